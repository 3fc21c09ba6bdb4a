// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <frugal/core/run/class_weights.hpp>

#include "core/loop/stand_ins.hpp"

#include <limits>
#include <vector>

namespace frugal_test::run_class_weights {

using frugal::ClassWeights;
using frugal_test::loop::says;
using frugal_test::loop::thrown_by;

TEST_CASE("lists, vectors and tensors are weights, and no weights are none") {
  at::Tensor const like = at::zeros({1}, at::kDouble);
  at::Tensor const wanted = at::tensor({1.0, 0.0, 2.5}, at::kDouble);
  CHECK(ClassWeights{1.0, 0.0, 2.5}.of(3, like, "here").equal(wanted));
  CHECK(ClassWeights(std::vector<double>{1.0, 0.0, 2.5}).of(3, like, "here").equal(wanted));
  CHECK(ClassWeights(at::tensor({1.0F, 0.0F, 2.5F})).of(3, like, "here").equal(wanted));
  CHECK(ClassWeights().empty());
  CHECK_FALSE(ClassWeights{1.0}.empty());
}

TEST_CASE("they are copied to the type and device of the logits once") {
  ClassWeights const weights{1.0, 2.0};
  at::Tensor const logits = at::zeros({3, 2}).requires_grad_();
  at::Tensor const first = weights.of(2, logits, "here");
  CHECK((first.scalar_type() == at::kFloat));
  CHECK_FALSE(first.requires_grad());
  CHECK(weights.of(2, logits, "here").is_same(first));
}

TEST_CASE("a weight that is negative or not finite, and another shape, are refused") {
  double const infinity = std::numeric_limits<double>::infinity();
  CHECK_THROWS_AS(ClassWeights({1.0, -0.5}), frugal::SettingsError);
  CHECK_THROWS_AS(ClassWeights({1.0, infinity}), frugal::SettingsError);
  CHECK_THROWS_AS(ClassWeights(at::ones({2, 2})), frugal::SettingsError);
  CHECK_THROWS_AS(ClassWeights(at::ones({0})), frugal::SettingsError);
}

TEST_CASE("another number of weights than classes is an error with both") {
  auto const error = thrown_by<frugal::ShapeError>(
      [] { ClassWeights({1.0, 2.0}).of(3, at::zeros({5, 3}), "CrossEntropy"); });
  REQUIRE(error);
  CHECK(says(error->what(), "2 weights, logits are [5, 3] Float"));
  CHECK(error->fault().where == "CrossEntropy");
}

}  // namespace frugal_test::run_class_weights
