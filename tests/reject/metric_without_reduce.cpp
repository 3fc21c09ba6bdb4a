// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: this recipe reduces over processes, and a metric of Validate cannot be summed over them. Write `template <class Sum> void reduce(Sum&& sum)` in it, with `counted = sum(counted)` for each number that it has counted.
#include <frugal/core/measure/measurement.hpp>
#include <frugal/metrics/accuracy.hpp>

#include <string_view>

using namespace frugal;

struct Alone {
  static constexpr std::string_view name = "alone";
  template <class B>
  void add(Loss const&, B const&) {}
  double result() const { return 0; }
};
struct Sum {
  template <class T>
  T operator()(Quantity, T value) const {
    return value;
  }
};
template <class M>
void validate() {
  frugal::detail::Measurement<M> measurement;
  measurement.reduce(Sum{});
}
template void validate<Accuracy>();
#ifdef FRUGAL_REJECT
template void validate<Alone>();
#endif
