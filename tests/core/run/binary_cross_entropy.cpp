// SPDX-License-Identifier: Apache-2.0
// Shapes: B samples, C classes, T positions.
#include <doctest/doctest.h>

#include <frugal/core/run/binary_cross_entropy.hpp>
#include <frugal/data/pad.hpp>

#include "core/loop/stand_ins.hpp"
#include "objective_cases.hpp"
#include "support/running.hpp"

#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

namespace frugal_test::run_binary_cross_entropy {

using namespace frugal_test::objectives;
using frugal::Batch;
using frugal::BinaryCrossEntropy;
using frugal::ClassWeights;
using frugal::ignored_label;
using frugal::Loss;
using frugal_test::loop::says;
using frugal_test::loop::thrown_by;

TEST_CASE("BinaryCrossEntropy is PyTorch's, values and gradients, of one batch and of a window") {
  int const compared = each_case("BinaryCrossEntropy", [](Json const& which) {
    BinaryCrossEntropy objective;
    if (auto const all = numbers(which, "weight"); !all.empty()) objective.class_weights = all;
    if (auto const all = numbers(which, "pos_weight"); !all.empty()) {
      objective.positive_weights = all;
    }
    check_like_pytorch(which, objective);
  });
  CHECK(compared == 6);
}

TEST_CASE("of one logit a label it is minus the logarithm of the sigmoid, and weighs the labels") {
  Identity identity;
  Batch const batch{at::tensor({2.0, -1.0}, at::kDouble).view({2, 1}), at::tensor({1, 0})};
  double const wanted = (std::log1p(std::exp(-2.0)) + std::log1p(std::exp(-1.0))) / 2;
  Loss const loss = BinaryCrossEntropy{}(identity, batch);
  CHECK(loss.value.item<double>() == doctest::Approx(wanted).epsilon(1e-12));
  CHECK(loss.weight == 2);
  CHECK(loss.output.is_same(batch.data));
}

TEST_CASE("a batch whose labels are all -100 has loss 0, weight 0 and gradients of 0") {
  Identity identity;
  at::Tensor const logits = at::full({3}, 200.0).requires_grad_();
  Loss const loss = BinaryCrossEntropy{}(identity, Batch{logits, at::full({3}, -100.0)});
  CHECK(loss.value.item<double>() == 0);
  CHECK(loss.weight == 0);
  loss.value.backward();
  CHECK(logits.grad().equal(at::zeros({3})));
}

/// Says itself how many labels count.
struct Counted {
  at::Tensor data, target;
  std::int64_t counted() const { return 17; }
};

TEST_CASE("labels in host memory are counted, whatever the batch says") {
  Identity identity;
  Counted const batch{at::zeros({3}), at::tensor({1.0F, -100.0F, 0.0F})};
  Loss const loss = BinaryCrossEntropy{}(identity, batch);
  CHECK(loss.weight == 2);
  CHECK(loss.value.item<double>() == doctest::Approx(std::log(2.0)));
}

using Sample = std::pair<at::Tensor, at::Tensor>;

/// Samples of `lengths` positions with `labels` labels each, of which every fifth is -100 where
/// `ignores`.
std::vector<Sample> with_labels(std::vector<std::int64_t> const& lengths, std::int64_t labels,
                                bool ignores) {
  std::vector<Sample> samples;
  for (std::int64_t const length : lengths) {
    at::Tensor target = at::rand({labels}).gt(0.5).to(at::kFloat);
    if (ignores) target.slice(0, 0, labels, 5).fill_(ignored_label);
    samples.emplace_back(at::randn({length}), target);
  }
  return samples;
}

/// Logits of several labels: sums of a sample's data, weighted.
struct Several : torch::nn::Module {
  explicit Several(std::int64_t labels)
      : weight(register_parameter("weight", at::linspace(-1, 1, labels))) {}
  at::Tensor forward(at::Tensor const& data_BT) {
    return data_BT.sum(1, /*keepdim=*/true) * weight;
  }
  at::Tensor weight;
};

TEST_CASE("a window of padded batches with several labels a sample is one large batch") {
  at::manual_seed(3);
  constexpr std::int64_t labels = 20;
  std::vector<Sample> const all_count = with_labels({3, 1}, labels, false);
  std::vector<Sample> const some_count = with_labels({2, 4, 1}, labels, true);
  std::vector<Sample> together = all_count;
  together.insert(together.end(), some_count.begin(), some_count.end());

  Several module(labels);
  Loss const large = BinaryCrossEntropy{}(module, frugal::Pad{}(together));
  CHECK(large.weight == 2 * 20 + 3 * 16);
  large.value.backward();
  at::Tensor const wanted = module.weight.grad().clone();
  module.weight.mutable_grad() = at::Tensor();

  frugal::Window<2> window;
  window.open();
  double sum = 0;
  for (auto const& samples : {all_count, some_count}) {
    frugal::PaddedBatch const batch = frugal::Pad{}(samples);
    Loss const loss = BinaryCrossEntropy{}(module, batch);
    double const factor = window.shrink(*loss.weight);
    if (module.weight.grad().defined()) module.weight.mutable_grad().mul_(factor);
    loss.value.backward(window.seed({.value = loss.value, .weight = *loss.weight}));
    window.add(batch, *loss.weight);
    sum += loss.value.item<double>() * *loss.weight;
  }
  window.normalize({module.weight.grad()});
  CHECK(distance(module.weight.grad(), wanted) < 2e-6);
  CHECK(sum / window.weight() == doctest::Approx(large.value.item<double>()).epsilon(1e-6));
}

TEST_CASE("a padded batch whose labels are all -100 has weight 0, of samples and of positions") {
  Identity identity;
  std::vector<Sample> samples{{at::ones({2}), at::full({2}, -100.0F)},
                              {at::ones({2}), at::full({2}, -100.0F)}};
  Loss const positions = BinaryCrossEntropy{}(identity, frugal::Pad{}(samples));
  CHECK(positions.weight == 0);
  CHECK(positions.value.item<double>() == 0);
  Several module(20);
  for (Sample& sample : samples) sample.second = at::full({20}, -100.0F);
  Loss const of_samples = BinaryCrossEntropy{}(module, frugal::Pad{}(samples));
  CHECK(of_samples.weight == 0);
  CHECK(of_samples.value.item<double>() == 0);
}

TEST_CASE("the padding of a padded batch does not count") {
  Identity identity;
  std::vector<std::pair<at::Tensor, at::Tensor>> const samples{
      {at::tensor({1.0, -2.0, 0.5}), at::tensor({1.0, 0.0, 1.0})},
      {at::tensor({3.0}), at::tensor({0.0})}};
  frugal::PaddedBatch const batch = frugal::Pad{.value = 9}(samples);
  auto const one = [](double logit, double label) {
    return label == 1 ? std::log1p(std::exp(-logit)) : std::log1p(std::exp(logit));
  };
  Loss const loss = BinaryCrossEntropy{}(identity, batch);
  CHECK(loss.weight == 4);
  CHECK(loss.value.item<double>() ==
        doctest::Approx((one(1, 1) + one(-2, 0) + one(0.5, 1) + one(3, 0)) / 4).epsilon(1e-6));
}

TEST_CASE("logits of 16 bits are widened: weights and sums keep their digits") {
  Identity identity;
  Batch const batch{at::full({4096}, 1.0, at::kBFloat16), at::zeros({4096})};
  Loss const loss = BinaryCrossEntropy{.positive_weights = {3.0}}(identity, batch);
  CHECK((loss.value.scalar_type() == at::kFloat));
  CHECK(loss.value.item<double>() == doctest::Approx(std::log1p(std::exp(1.0))).epsilon(1e-6));
}

TEST_CASE("what does not fit is a ShapeError with both") {
  Identity identity;
  auto const shapes = thrown_by<frugal::ShapeError>(
      [&] { BinaryCrossEntropy{}(identity, Batch{at::zeros({4, 3}), at::zeros({4}, at::kLong)}); });
  REQUIRE(shapes);
  CHECK(says(shapes->what(), "logits are [4, 3] Float, labels are [4] Long"));
  auto const weights = thrown_by<frugal::ShapeError>([&] {
    BinaryCrossEntropy{.class_weights = {1.0, 2.0}}(identity,
                                                    Batch{at::zeros({4, 3}), at::zeros({4, 3})});
  });
  REQUIRE(weights);
  CHECK(says(weights->what(), "2 weights, logits are [4, 3] Float"));
  // A mask of bytes as an image has it; with and without labels that are ignored.
  for (at::Tensor const& wrong : {at::tensor({0, 255}), at::tensor({-100, 2})}) {
    CHECK(thrown_by<frugal::LabelError>(
        [&] { BinaryCrossEntropy{}(identity, Batch{at::zeros({2}), wrong}); }));
  }
}

}  // namespace frugal_test::run_binary_cross_entropy
