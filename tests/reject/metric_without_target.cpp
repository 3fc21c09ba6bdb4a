// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: a metric needs labels or target values, and this batch type has none. Give it a member `target`, or write a metric that takes what it has.
#include <frugal/metrics/accuracy.hpp>

#include <string_view>

using namespace frugal;

struct Labelled {
  at::Tensor target;
};
template <class B>
void measure() {
  Accuracy accuracy;
  accuracy.add(Loss{}, B{});
}
template void measure<Batch>();
#ifdef FRUGAL_REJECT
template void measure<at::Tensor>();
#endif
