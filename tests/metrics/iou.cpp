// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <frugal/metrics/dice.hpp>
#include <frugal/metrics/iou.hpp>
#include <frugal/metrics/precision_recall.hpp>

#include "overlap_cases.hpp"

namespace frugal_test::metrics_iou {

using namespace frugal_test::metrics;

TEST_CASE("intersection over union is that of scikit-learn and torchmetrics") {
  CHECK(overlaps_equal_reference<IoU>("classes") == 12);
  CHECK(overlaps_equal_reference<IoU>("two") == 3);
}

TEST_CASE("of one image of two classes it is what the definition says") {
  // Predicted 1 at two pixels, labelled at two, and one is both: 1 of 3; class 0: 5 of 7.
  at::Tensor const logits = at::tensor({1.0, 1.0, -1.0, -1.0, -1.0, -1.0, -1.0, -1.0});
  at::Tensor const labels = at::tensor({1, 0, 1, 0, 0, 0, 0, 0});
  Metrics const found = over<IoU>({logits, labels}).result();
  CHECK(found["iou"] == doctest::Approx((1.0 / 3 + 5.0 / 7) / 2).epsilon(1e-12));
  CHECK(found.table("iou").equal(at::tensor({5.0 / 7, 1.0 / 3}, at::kDouble)));
}

TEST_CASE("no label is NaN without a table, and a model that has diverged scores 0") {
  nothing_and_nan<IoU>();
}

TEST_CASE("without the labels of a class the mean is over the other classes") {
  leaves_a_class_out<IoU>();
}

TEST_CASE("half precision decides as single precision, with another ignored label too") {
  other_types<IoU>();
}

TEST_CASE("labels that are no class are refused") {
  CHECK(says(refusal<IoU>(at::zeros({2, 3}), at::tensor({1, 255})), "1 labels name no class"));
  CHECK(says(refusal<IoU>(at::zeros({2, 3, 4}), at::zeros({2, 5}, at::kLong)), "metric iou"));
}

TEST_CASE("counts stay exact beyond the whole numbers of single precision") {
  IoU metric;
  at::Tensor const logits = at::zeros({1, 2, 1});
  logits.select(1, 1).fill_(1);
  at::Tensor const many = logits.expand({1, 2, 1 << 23});
  for (int i = 0; i < 4; ++i) add(metric, many, at::ones({1, 1}, at::kLong).expand({1, 1 << 23}));
  // One label of class 0 among 2^25.
  add(metric, logits, at::zeros({1, 1}, at::kLong));
  CHECK(metric.result().table("iou")[1].item<double>() == 33554432.0 / 33554433.0);
}

}  // namespace frugal_test::metrics_iou
