// SPDX-License-Identifier: Apache-2.0
// Shapes: B samples, C classes, T positions.
#include <doctest/doctest.h>

#include <frugal/run/objective.hpp>

#include "loop/stand_ins.hpp"

#include <cmath>

namespace frugal_test::run_objective {

using namespace frugal_test::loop;

/// Returns its input: the batch's data are the logits.
struct Identity : torch::nn::Module {
  at::Tensor forward(at::Tensor const& data) { return data; }
};

TEST_CASE("CrossEntropy of class labels is LibTorch's, weighs the samples and keeps the logits") {
  Identity identity;
  at::manual_seed(1);
  Batch const batch{at::randn({6, 3}), at::randint(3, {6}, at::kLong)};
  Loss const loss = CrossEntropy{}(identity, batch);
  CHECK(loss.value.equal(at::cross_entropy_loss(batch.data, batch.target)));
  CHECK(loss.weight == 6);
  CHECK(loss.output.is_same(batch.data));
}

TEST_CASE("CrossEntropy agrees with minus the logarithm of the softmax") {
  Identity identity;
  Batch const batch{at::tensor({1.0, 2.0, 0.5, 0.0, 0.0, 0.0}, at::kDouble).view({2, 3}),
                    at::tensor({1, 2}, at::kLong)};
  double const first = std::log(std::exp(1.0) + std::exp(2.0) + std::exp(0.5)) - 2.0;
  double const second = std::log(3.0);
  CHECK(CrossEntropy{}(identity, batch).value.item<double>() ==
        doctest::Approx((first + second) / 2).epsilon(1e-12));
}

TEST_CASE("label smoothing is passed on") {
  Identity identity;
  at::manual_seed(1);
  Batch const batch{at::randn({6, 3}), at::randint(3, {6}, at::kLong)};
  Loss const loss = CrossEntropy{.label_smoothing = 0.1}(identity, batch);
  CHECK(loss.value.equal(
      at::cross_entropy_loss(batch.data, batch.target, {}, at::Reduction::Mean, -100, 0.1)));
  CHECK_FALSE(loss.value.equal(at::cross_entropy_loss(batch.data, batch.target)));
}

TEST_CASE("logits [B, C, T] with labels [B, T] weigh B times T") {
  Identity identity;
  at::manual_seed(1);
  Batch const batch{at::randn({2, 3, 5}), at::randint(3, {2, 5}, at::kLong)};
  Loss const loss = CrossEntropy{}(identity, batch);
  CHECK(loss.value.equal(at::cross_entropy_loss(batch.data, batch.target)));
  CHECK(loss.weight == 10);
}

TEST_CASE("class probabilities are targets too, and weigh the samples") {
  Identity identity;
  at::manual_seed(1);
  Batch const batch{at::randn({4, 3}), at::softmax(at::randn({4, 3}), 1)};
  Loss const loss = CrossEntropy{}(identity, batch);
  CHECK(loss.value.equal(at::cross_entropy_loss(batch.data, batch.target)));
  CHECK(loss.weight == 4);
}

TEST_CASE("logits that do not fit their labels are an error with both shapes") {
  Identity identity;
  auto const refused = [&](at::Tensor const& logits, at::Tensor const& labels) {
    return thrown_by<ShapeError>([&] { CrossEntropy{}(identity, Batch{logits, labels}); });
  };
  auto const error = refused(at::zeros({32, 10}), at::zeros({31}, at::kLong));
  REQUIRE(error);
  CHECK(error->fault().where == "CrossEntropy");
  CHECK(error->fault().why == "logits are [32, 10] Float, labels are [31] Long");
  CHECK(refused(at::zeros({4, 3}), at::zeros({4, 3}, at::kLong)));
  CHECK(refused(at::zeros({4}), at::zeros({}, at::kLong)));
  CHECK(refused(at::zeros({4, 3}), at::zeros({4, 3, 2}, at::kLong)));
  CHECK(refused(at::zeros({4, 3}), at::zeros({4, 2})));
}

TEST_CASE("MeanSquaredError is the mean of the squared differences") {
  Identity identity;
  Batch const batch{at::tensor({1.0, 2.0, 4.0}), at::tensor({1.0, 0.0, 1.0})};
  Loss const loss = MeanSquaredError{}(identity, batch);
  CHECK(loss.value.item<double>() == doctest::Approx(13.0 / 3));
  CHECK(loss.output.is_same(batch.data));
}

TEST_CASE("MeanSquaredError refuses to broadcast, and shows both shapes") {
  Identity identity;
  auto const error = thrown_by<ShapeError>(
      [&] { MeanSquaredError{}(identity, Batch{at::zeros({8, 1}), at::zeros({8})}); });
  REQUIRE(error);
  CHECK(error->fault().why == "output is [8, 1] Float, target is [8] Float");
}

TEST_CASE("an objective's result becomes a Loss: a tensor without a weight, a Loss unchanged") {
  Loss const bare = frugal::detail::as_loss(at::ones({}));
  CHECK(bare.value.item<double>() == 1.0);
  CHECK_FALSE(bare.weight);
  CHECK_FALSE(bare.output.defined());
  Loss const whole = frugal::detail::as_loss(Loss{.value = at::ones({}), .weight = 3});
  CHECK(whole.weight == 3);
}

TEST_CASE("an objective is callable with a module and a batch and returns a loss") {
  auto const tensor = [](Identity&, Batch const& batch) { return batch.data.mean(); };
  auto const loss = [](Identity&, Batch const& batch) { return Loss{.value = batch.data}; };
  auto const number = [](Identity&, Batch const&) { return 1.0; };
  auto const other = [](Identity&, int) { return at::Tensor(); };
  CHECK(ObjectiveFor<decltype(tensor) const, Identity, Batch>);
  CHECK(ObjectiveFor<decltype(loss) const, Identity, Batch>);
  CHECK(ObjectiveFor<CrossEntropy, Identity, Batch>);
  CHECK_FALSE(ObjectiveFor<decltype(number) const, Identity, Batch>);
  CHECK_FALSE(ObjectiveFor<decltype(other) const, Identity, Batch>);
}

}  // namespace frugal_test::run_objective
