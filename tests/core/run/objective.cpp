// SPDX-License-Identifier: Apache-2.0
// Shapes: B samples, C classes, T positions.
// Shapes: B samples, T positions.
#include <doctest/doctest.h>
#include <torch/data/example.h>

#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <frugal/core/run/objective.hpp>
#include <frugal/data/pad.hpp>

#include "core/loop/stand_ins.hpp"
#include "objective_cases.hpp"
#include "support/running.hpp"

namespace frugal_test::run_objective {

using namespace frugal_test::loop;
using frugal_test::objectives::check_like_pytorch;
using frugal_test::objectives::each_case;
using frugal_test::objectives::Identity;
using frugal_test::objectives::numbers;
using frugal_test::support::Json;

TEST_CASE("CrossEntropy is PyTorch's, values and gradients, of one batch and of a window") {
  int const compared = each_case("CrossEntropy", [](Json const& which) {
    CrossEntropy objective{.label_smoothing = which.at("label_smoothing")};
    if (auto const all = numbers(which, "weight"); !all.empty()) objective.class_weights = all;
    check_like_pytorch(which, objective);
  });
  CHECK(compared == 8);
}

TEST_CASE("L1, Huber and MeanSquaredError are PyTorch's, of one batch and of a window") {
  int const compared =
      each_case("MeanSquaredError",
                [](Json const& which) { check_like_pytorch(which, MeanSquaredError{}); }) +
      each_case("L1", [](Json const& which) { check_like_pytorch(which, L1{}); }) +
      each_case("Huber", [](Json const& which) {
        check_like_pytorch(which, Huber{.delta = which.at("delta")});
      });
  CHECK(compared == 3);
}

TEST_CASE("with class weights the weight of a loss is the sum over its labels") {
  Identity identity;
  Batch const batch{at::zeros({4, 3}), at::tensor({2, -100, 0, 2}, at::kLong)};
  Loss const loss = CrossEntropy{.class_weights = {0.5, 9.0, 2.0}}(identity, batch);
  CHECK(loss.weight == 4.5);
  CHECK(loss.value.item<double>() == doctest::Approx(std::log(3.0)));
  // A class of weight 0 counts for nothing.
  Loss const none = CrossEntropy{.class_weights = {1.0, 1.0, 0.0}}(
      identity, Batch{at::zeros({2, 3}), at::tensor({2, 2}, at::kLong)});
  CHECK(none.weight == 0);
  CHECK(none.value.item<double>() == 0);
}

TEST_CASE("a label that is no class is LibTorch's error, with class weights too") {
  Identity identity;
  Batch const batch{at::zeros({2, 3}), at::tensor({0, 7}, at::kLong)};
  CHECK_THROWS_WITH_AS((CrossEntropy{.class_weights = {1.0, 1.0, 1.0}}(identity, batch)),
                       doctest::Contains("Target 7 is out of bounds"), c10::Error);
}

TEST_CASE("L1 and Huber of a padded batch are those of its own positions") {
  Identity identity;
  std::vector<std::pair<at::Tensor, at::Tensor>> const samples{
      {at::tensor({1.0, 2.0, 4.0}), at::tensor({1.0, 0.0, 1.0})},
      {at::tensor({5.0}), at::tensor({4.5})}};
  frugal::PaddedBatch const batch = frugal::Pad{.value = 9}(samples);
  // Errors of 0, 2, 3 and 0.5.
  CHECK(L1{}(identity, batch).value.item<double>() == doctest::Approx(5.5 / 4));
  CHECK(Huber{}(identity, batch).value.item<double>() ==
        doctest::Approx((0 + 1.5 + 2.5 + 0.125) / 4));
  CHECK(Huber{}(identity, batch).weight == 4);
  auto const error =
      thrown_by<ShapeError>([&] { L1{}(identity, Batch{at::zeros({4, 1}), at::zeros({4})}); });
  REQUIRE(error);
  CHECK(error->fault().where == "L1");
}

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

TEST_CASE("probabilities of every position are as many terms as positions") {
  Identity identity;
  at::manual_seed(1);
  Batch const batch{at::randn({4, 3, 5}), at::softmax(at::randn({4, 3, 5}), 1)};
  Loss const loss = CrossEntropy{}(identity, batch);
  CHECK(loss.value.equal(at::cross_entropy_loss(batch.data, batch.target)));
  CHECK(loss.weight == 20);
}

TEST_CASE("labels of -100 count neither in the mean nor in its weight") {
  Identity identity;
  at::manual_seed(1);
  at::Tensor const logits = at::randn({2, 3, 4});
  at::Tensor const labels =
      at::tensor({0, -100, 2, 1, -100, -100, 1, -100}, at::kLong).view({2, 4});
  Loss const loss = CrossEntropy{}(identity, Batch{logits, labels});
  CHECK(loss.weight == 4);
  CHECK(loss.value.equal(at::cross_entropy_loss(logits, labels)));
  // Also of a view whose labels do not lie side by side.
  Loss const view = CrossEntropy{}(identity, Batch{logits.slice(2, 0, 3), labels.slice(1, 0, 3)});
  CHECK(view.weight == 3);
}

TEST_CASE("a batch whose labels are all -100 has loss 0, weight 0 and gradients of 0") {
  Identity identity;
  at::Tensor const logits = at::randn({3, 4}).requires_grad_();
  Batch const batch{logits, at::full({3}, -100, at::kLong)};
  for (double const smoothing : {0.0, 0.1}) {
    Loss const loss = CrossEntropy{.label_smoothing = smoothing}(identity, batch);
    CHECK(loss.value.item<double>() == 0);
    CHECK(loss.weight == 0);
    loss.value.backward();
    CHECK(logits.grad().equal(at::zeros({3, 4})));
  }
}

/// Says itself how many labels count.
struct Counting {
  at::Tensor data, target;
  std::int64_t counted() const { return 17; }
};

TEST_CASE("the count of a batch that counts its labels is used, without counting again") {
  Identity identity;
  Counting const batch{at::randn({3, 4}), at::zeros({3}, at::kLong)};
  CHECK(CrossEntropy{}(identity, batch).weight == 17);
}

TEST_CASE("counting labels in host memory costs no operator") {
  Identity identity;
  Batch const batch{at::randn({8, 4}), at::randint(4, {8}, at::kLong)};
  auto const ours = frugal_test::support::operators_of([&] { CrossEntropy{}(identity, batch); });
  auto const torchs =
      frugal_test::support::operators_of([&] { at::cross_entropy_loss(batch.data, batch.target); });
  CHECK(ours == torchs);
}

TEST_CASE("labels elsewhere all weigh, without a wait, unless they are to be counted there") {
  Identity identity;
  Batch const batch{at::randn({3, 4}).to(at::kMeta), at::full({3}, -100, at::kLong).to(at::kMeta)};
  CHECK(CrossEntropy{}(identity, batch).weight == 3);
  // What counts has to read the labels, and there are none to read on this device.
  CHECK_THROWS_AS(CrossEntropy{.counts_on_device = true}(identity, batch), c10::Error);
}

TEST_CASE("pairs, tuples, arrays, vectors and maps are batches of data and target") {
  Identity identity;
  at::manual_seed(1);
  at::Tensor const x = at::randn({6, 3}), y = at::randint(3, {6}, at::kLong);
  at::Tensor const wanted = at::cross_entropy_loss(x, y);
  auto const check = [&](auto const& batch) {
    CHECK(CrossEntropy{}(identity, batch).value.equal(wanted));
  };
  check(std::pair{x, y});
  check(std::tuple{x, y, at::zeros({6})});
  check(std::array{x, y});
  check(std::vector{x, y});
  check(std::map<std::string, at::Tensor>{{"input_ids", x}, {"labels", y}});
  check(torch::data::Example<>{x, y});
  CHECK(MeanSquaredError{}(identity, std::pair{x, x}).value.item<double>() == 0);
  CHECK_FALSE(ObjectiveFor<CrossEntropy, Identity, at::Tensor>);
  CHECK_FALSE(ObjectiveFor<MeanSquaredError, Identity, std::tuple<at::Tensor>>);
}

TEST_CASE("MeanSquaredError of a padded batch is that of its own positions") {
  Identity identity;
  std::vector<std::pair<at::Tensor, at::Tensor>> const samples{
      {at::tensor({1.0, 2.0, 4.0}), at::tensor({1.0, 0.0, 1.0})},
      {at::tensor({5.0}), at::tensor({3.0})}};
  frugal::PaddedBatch const batch = frugal::Pad{.value = 9}(samples);
  Loss const loss = MeanSquaredError{}(identity, batch);
  CHECK(loss.value.item<double>() == doctest::Approx((0 + 4 + 9 + 4) / 4.0));
  CHECK(loss.weight == 4);
  CHECK(loss.output.is_same(batch.data));
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

namespace frugal_test::run_masked_mean {

using frugal::Loss;
using frugal::masked_mean;

at::Tensor const mask_BT() {
  return at::tensor({1, 1, 0, 1, 0, 0}, at::kLong).view({2, 3}).to(at::kBool);
}

TEST_CASE("a masked mean is that of the positions under the mask, and weighs them") {
  at::Tensor const values = at::tensor({1.0, 2.0, 50.0, 6.0, 70.0, 80.0}).view({2, 3});
  Loss const loss = masked_mean(values, mask_BT());
  CHECK(loss.value.item<double>() == doctest::Approx(3.0));
  CHECK(loss.weight == 3);
}

TEST_CASE("values with more dimensions than the mask are averaged over these as well") {
  at::manual_seed(3);
  at::Tensor const values = at::randn({2, 3, 4, 5}, at::kDouble);
  Loss const loss = masked_mean(values, mask_BT());
  at::Tensor const wanted = values.masked_select(mask_BT().view({2, 3, 1, 1})).mean();
  CHECK(loss.value.item<double>() == doctest::Approx(wanted.item<double>()).epsilon(1e-12));
  CHECK(loss.weight == 3);
}

TEST_CASE("what is not under the mask has no effect and no gradient, NaN included") {
  double const nan = std::numeric_limits<double>::quiet_NaN();
  at::Tensor const values =
      at::tensor({1.0, 2.0, nan, 6.0, nan, nan}).view({2, 3}).requires_grad_();
  Loss const loss = masked_mean(values, mask_BT());
  CHECK(loss.value.item<double>() == doctest::Approx(3.0));
  loss.value.backward();
  CHECK(values.grad().equal(mask_BT().to(at::kDouble) / 3));
}

TEST_CASE("a mask that is false everywhere gives 0 with weight 0, and gradients of 0") {
  at::Tensor const values = at::randn({2, 3}).requires_grad_();
  Loss const loss = masked_mean(values, at::zeros({2, 3}, at::kBool));
  CHECK(loss.value.item<double>() == 0);
  CHECK(loss.weight == 0);
  loss.value.backward();
  CHECK(values.grad().equal(at::zeros({2, 3})));
}

TEST_CASE("a count that the host knows is believed; in host memory counting costs no operator") {
  at::Tensor const values = at::randn({2, 3}), mask = mask_BT();
  CHECK(masked_mean(values, mask, 2).weight == 2);
  auto const known = frugal_test::support::operators_of([&] { masked_mean(values, mask, 3); });
  auto const counted = frugal_test::support::operators_of([&] { masked_mean(values, mask); });
  CHECK(known == counted);
}

TEST_CASE("a mask that does not fit is refused with both shapes") {
  CHECK_THROWS_WITH_AS(masked_mean(at::zeros({2, 3}), at::zeros({3}, at::kBool)),
                       "frugal: the mask does not fit the values (masked_mean): values are [2, 3] "
                       "Float, the mask is [3] Bool. Values are [B, T, ...], the mask [B, T] of "
                       "bool.",
                       frugal::ShapeError);
  CHECK_THROWS_AS(masked_mean(at::zeros({2, 3}), at::ones({2, 3})), frugal::ShapeError);
  CHECK_THROWS_AS(masked_mean(at::zeros({2}), at::zeros({2, 3}, at::kBool)), frugal::ShapeError);
  CHECK_THROWS_AS(masked_mean(at::zeros({2}), at::Tensor()), frugal::ShapeError);
}

}  // namespace frugal_test::run_masked_mean

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
