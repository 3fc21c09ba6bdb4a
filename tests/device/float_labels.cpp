// SPDX-License-Identifier: Apache-2.0
// Labels of a floating-point type that lie on a device: they are checked there, and the error comes
// with the result.
#include <doctest/doctest.h>

#include <frugal/metrics/accuracy.hpp>
#include <frugal/metrics/confusion_matrix.hpp>
#include <frugal/metrics/precision_recall.hpp>
#include <frugal/metrics/roc_auc.hpp>

#include "metrics/cases.hpp"
#include "support/fake_device.hpp"

#include <type_traits>

namespace frugal_test::device_float_labels {

using namespace frugal_test::metrics;

template <class M>
M measured(at::Tensor const& output, at::Tensor const& target) {
  M metric;
  add(metric, output.to(fake::device(0)), target.to(fake::device(0)));
  add(metric, output.to(fake::device(0)), target.to(fake::device(0)));
  return metric;
}

at::Tensor scores() { return at::tensor({2.0F, -1.0F, 1.0F, -3.0F}); }

template <class M>
void check_refuses(M const& metric) {
  try {
    static_cast<void>(metric.result());
  } catch (MetricError const& error) {
    CHECK(says(error.what(), "4 labels name no class"));
    CHECK(says(error.what(), "MixUp"));
    return;
  }
  FAIL_CHECK("no MetricError");
}

TEST_CASE_TEMPLATE("probabilities on a device are a MetricError, with the result", M, Accuracy,
                   F1Score<>, ConfusionMatrix, RocAuc<>) {
  M const metric = measured<M>(scores(), at::tensor({0.95F, 0.05F, 1.0F, -100.0F}));
  check_refuses(metric);
  check_refuses(resumed(metric));
  if constexpr (!std::is_same_v<M, RocAuc<>>) {
    M const other = measured<M>(scores(), at::tensor({0.0F, 0.0F, 1.0F, 1.0F}));
    check_refuses(together(metric, other));
  }
  CHECK(fake::complaints().empty());
}

TEST_CASE_TEMPLATE("labels on a device give the value that they give on the host", M, Accuracy,
                   F1Score<>, RocAuc<>) {
  at::Tensor const labels = at::tensor({1.0F, 0.0F, -100.0F, 1.0F});
  CHECK(measured<M>(scores(), labels).result() ==
        over<M>({at::cat({scores(), scores()}), at::cat({labels, labels})}).result());
  CHECK(fake::complaints().empty());
}

}  // namespace frugal_test::device_float_labels
