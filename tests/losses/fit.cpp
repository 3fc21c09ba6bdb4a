// SPDX-License-Identifier: Apache-2.0
// Losses of losses.hpp in fits.
// Shapes: B samples, C classes, T positions.
#include <doctest/doctest.h>

#include <frugal/data/pad.hpp>
#include <frugal/frugal.hpp>
#include <frugal/losses.hpp>
#include <frugal/metrics/iou.hpp>

#include "cases.hpp"

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace frugal_test::losses_fit {

using namespace frugal;
using frugal_test::support::distance;

/// The weights of a linear layer after one epoch of `Objective`.
template <class Accumulation, class Objective>
at::Tensor trained(Objective const& objective, at::Tensor const& data, at::Tensor const& target,
                   std::int64_t outputs, std::size_t batch) {
  at::manual_seed(4);
  torch::nn::Linear module(data.size(-1), outputs);
  TensorDataset train(data, target, {.batch = static_cast<std::int64_t>(batch), .shuffle = false});
  Trainer trainer{module, objective, Settings{.epochs = 1}, Optimize<SGD>{.lr = 0.5},
                  Accumulation{}};
  trainer.fit(train);
  return module->weight.detach();
}

TEST_CASE("windows of Focal and Triplet are one large batch, ragged ones and ignored labels too") {
  at::Tensor const data = frugal_test::support::table({10, 5}, 5, 1);
  at::Tensor const labels = at::tensor({0, 1, -100, 2, 2, -100, -100, 1, 0, 2}).to(at::kLong);
  CHECK(distance(trained<Accumulate<4>>(Focal{}, data, labels, 3, 3),
                 trained<Accumulate<1>>(Focal{}, data, labels, 3, 10)) < 1e-6);
  at::Tensor const triplets = frugal_test::support::table({10, 3, 5}, 5, 2);
  at::Tensor const none = at::zeros({10});
  CHECK(distance(trained<Accumulate<4>>(Triplet{}, triplets, none, 3, 3),
                 trained<Accumulate<1>>(Triplet{}, triplets, none, 3, 10)) < 1e-6);
}

TEST_CASE("DiceLoss learns to segment, as IoU says") {
  at::manual_seed(5);
  at::Tensor const images = at::randn({24, 3, 4, 4});
  TensorDataset data(images, images.argmax(1), {.batch = 8});
  Trainer trainer{torch::nn::Conv2d(3, 3, 1), DiceLoss{}, Settings{.epochs = 60},
                  Optimize<AdamW>{.lr = 0.1}, Validate<Every<20, Epoch>, IoU>{}};
  Report const report = trainer.fit(data, data);
  CHECK(report.last()["iou"] > 0.9);
}

/// Logits [B, 4, T] of numbers [B, T].
struct Speller : torch::nn::Module {
  at::Tensor forward(at::Tensor const& data) {
    return layer(at::one_hot(data, 4).to(at::kFloat)).transpose(1, 2);
  }
  torch::nn::Linear layer{register_module("layer", torch::nn::Linear(4, 4))};
};

TEST_CASE("Ctc learns texts of padded batches in a fit with a validation") {
  at::manual_seed(6);
  // A text is its letters, each twice, with a pause after each.
  std::vector<std::pair<at::Tensor, at::Tensor>> samples;
  for (std::int64_t i = 0; i < 24; ++i) {
    std::int64_t const length = 1 + i % 3;
    at::Tensor const text = at::randint(1, 4, {length}, at::kLong);
    at::Tensor const sound = at::stack({text, text, at::zeros_like(text)}, 1).flatten();
    samples.emplace_back(sound, at::cat({text, at::full({3 - length}, -100, at::kLong)}));
  }
  auto train = from_samples(samples, {.batch = 5}, Pad{});
  auto valid = from_samples(samples, {.batch = 7, .shuffle = false}, Pad{});
  Trainer trainer{Speller{},
                  Ctc{},
                  Settings{.epochs = 60},
                  Optimize<AdamW>{.lr = 0.2},
                  Accumulate<2>{},
                  Validate<Every<20, Epoch>>{}};
  Report const report = trainer.fit(train, valid);
  CHECK(report.last()["loss"] < 0.1);
}

TEST_CASE("Contrastive brings views of a sample together") {
  at::manual_seed(7);
  at::Tensor const own = at::randn({32, 1, 6});
  at::Tensor const views = at::cat({own, own}, 1) + 0.5 * at::randn({32, 2, 6});
  TensorDataset data(views, at::zeros({32}), {.batch = 16});
  Trainer trainer{torch::nn::Linear(6, 8), Contrastive{.temperature = 0.2}, Settings{.epochs = 40},
                  Optimize<AdamW>{.lr = 0.02}, Validate<Every<39, Epoch>>{}};
  double const before = trainer.evaluate(data)["loss"];
  trainer.fit(data);
  CHECK(trainer.evaluate(data)["loss"] < before);
}

}  // namespace frugal_test::losses_fit
