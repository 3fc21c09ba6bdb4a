// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: TrainMetrics survives a resume, and a metric of it cannot be saved. Write `template <class Archive> void persist(Archive& archive)` in it, with `archive("name", value)` for each number and tensor that it has counted.
#include <frugal/core/measure/measurement.hpp>
#include <frugal/core/state/state_writer.hpp>
#include <frugal/metrics/accuracy.hpp>

#include <string_view>

using namespace frugal;

struct Fleeting {
  static constexpr std::string_view name = "fleeting";
  template <class B>
  void add(Loss const&, B const&) {}
  double result() const { return 0; }
};
template <class M>
void save(StateWriter& archive) {
  frugal::detail::Measurement<M> measurement;
  measurement.persist(archive);
}
template void save<Accuracy>(StateWriter&);
#ifdef FRUGAL_REJECT
template void save<Fleeting>(StateWriter&);
#endif
