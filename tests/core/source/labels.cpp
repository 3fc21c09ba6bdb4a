// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <ATen/ATen.h>

#include <frugal/core/source/labels.hpp>

namespace frugal_test::data_labels {

using frugal::detail::count_labels_now;
using frugal::detail::count_true_now;

TEST_CASE("labels that are not -100 are counted, in whatever way they lie") {
  at::Tensor const labels = at::tensor({3, -100, 0, -100, -1, 7}, at::kLong).view({2, 3});
  CHECK(count_labels_now(labels) == 4);
  CHECK(count_labels_now(labels.t()) == 4);
  CHECK(count_labels_now(labels.slice(1, 1, 3)) == 3);
  CHECK(count_labels_now(labels.slice(1, 0, 2)) == 2);
  CHECK(count_labels_now(labels[0][1]) == 0);
  CHECK(count_labels_now(at::zeros({0}, at::kLong)) == 0);
}

TEST_CASE("labels of another type are counted by an operator") {
  CHECK(count_labels_now(at::tensor({3, -100, 0}, at::kInt)) == 2);
  CHECK(count_labels_now(at::tensor({3, 0}, at::kByte)) == 2);
}

TEST_CASE("true elements of a mask are counted") {
  at::Tensor const mask = at::tensor({1, 0, 1, 1}, at::kLong).view({2, 2}).to(at::kBool);
  CHECK(count_true_now(mask) == 3);
  CHECK(count_true_now(mask.slice(1, 1, 2)) == 1);
}

}  // namespace frugal_test::data_labels
