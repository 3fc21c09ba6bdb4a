// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: RocAuc ranks the scores of all samples, which cannot be added up over the processes of this recipe (service::reduce). Remove it from the recipe, and evaluate it in one process.
#include <frugal/core/measure/measurement.hpp>

#include <string_view>

using namespace frugal;

#include <frugal/metrics/accuracy.hpp>
#include <frugal/metrics/roc_auc.hpp>

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
template void validate<RocAuc<>>();
#endif
