// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: a metric's add cannot be called with the loss and the batch. Write `template <class B> void add(frugal::Loss const& loss, B const& batch)` in it; the module's output is loss.output.
#include <frugal/core/measure/measurement.hpp>

#include <string_view>

using namespace frugal;

struct Good {
  static constexpr std::string_view name = "good";
  template <class B>
  void add(Loss const&, B const&) {}
  double result() const { return 0; }
};
struct AsInPython {
  static constexpr std::string_view name = "as_in_python";
  void add(at::Tensor const&, at::Tensor const&) {}
  double result() const { return 0; }
};
template <class Metric>
void measure() {
  frugal::detail::Measurement<Metric> measurement;
  measurement.add(Loss{}, at::Tensor{});
}
template void measure<Good>();
#ifdef FRUGAL_REJECT
template void measure<AsInPython>();
#endif
