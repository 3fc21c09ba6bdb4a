// SPDX-License-Identifier: Apache-2.0
// Padded sequences and labels that do not count, through the loop.
// Shapes: T positions of a sequence, F = 5 features, C = 4 classes.
#include <doctest/doctest.h>

#include <torch/nn/modules/linear.h>

#include <frugal/data/dataset.hpp>
#include <frugal/data/pad.hpp>
#include <frugal/policy/accumulate.hpp>
#include <frugal/policy/accumulate/split.hpp>
#include <frugal/policy/optimize.hpp>
#include <frugal/policy/rollback.hpp>
#include <frugal/trainer.hpp>

#include "core/loop/stand_ins.hpp"
#include "support/reference.hpp"
#include "support/running.hpp"

#include <cmath>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace frugal_test::loop_padding {

using namespace frugal_test::loop;
using frugal_test::support::distance;
using frugal_test::support::Json;
using frugal_test::support::tensor_in;
using Sequence = std::pair<at::Tensor, at::Tensor>;

/// A linear layer at every position: [B, T, F] to [B, C, T].
struct Positions : torch::nn::Module {
  Positions() { layer = register_module("layer", torch::nn::Linear(5, 4)); }
  at::Tensor forward(at::Tensor const& data_BTF) {
    return layer->forward(data_BTF).transpose(1, 2);
  }
  torch::nn::Linear layer{nullptr};
};

struct PaddingFile {
  Json file = frugal_test::support::reference("padding.json");

  Positions network(at::ScalarType type) const {
    Positions net;
    at::NoGradGuard const no_gradients;
    net.layer->weight.copy_(tensor_in(file.at("start").at("weight"), {4, 5}));
    net.layer->bias.copy_(tensor_in(file.at("start").at("bias"), {4}));
    net.to(type);
    return net;
  }
  std::vector<Sequence> sequences(at::ScalarType type) const {
    std::vector<Sequence> all;
    for (Json const& each : file.at("sequences")) {
      at::Tensor const labels = at::tensor(each.at("target").get<std::vector<std::int64_t>>());
      all.emplace_back(tensor_in(each.at("data"), {labels.size(0), 5}).to(type), labels);
    }
    return all;
  }
};

/// Trains as the file has it, and says how far losses and weights are apart from it.
template <class... Ps>
double apart(char const* name, std::int64_t batch, Ps const&... policies) {
  PaddingFile const file;
  at::ScalarType const type = std::string(name) == "float64" ? at::kDouble : at::kFloat;
  auto source = frugal::from_samples(file.sequences(type), {.batch = batch, .shuffle = false},
                                     frugal::Pad{.value = 1e3, .multiple = 4});
  std::vector<double> losses;
  frugal_test::support::Seen seen;
  frugal_test::support::Spy const spy{.seen = &seen, .each_step = [&](frugal::Counters const& at) {
                                        double sum = 0;
                                        double weight = 0;
                                        for (auto i = seen.losses.size() - at.window_micro_batches;
                                             i < seen.losses.size(); ++i) {
                                          sum += seen.losses[i] * seen.weights[i];
                                          weight += seen.weights[i];
                                        }
                                        losses.push_back(sum / weight);
                                      }};
  Json const& given = file.file.at("optimizer");
  Trainer trainer{
      file.network(type),
      CrossEntropy{},
      Settings{.epochs = file.file.at("epochs").get<std::uint64_t>()},
      frugal::Optimize<frugal::SGD>{.lr = given.at("lr"), .momentum = given.at("momentum")},
      spy,
      policies...};
  static_cast<void>(trainer.fit(source));
  Json const& wanted = frugal_test::support::case_named(file.file.at("cases"), name);
  auto const expected = wanted.at("losses").get<std::vector<double>>();
  REQUIRE(losses.size() == expected.size());
  double most = 0;
  for (std::size_t i = 0; i < losses.size(); ++i) {
    most = std::fmax(most, std::abs(losses[i] - expected[i]));
  }
  auto const& final = wanted.at("final");
  auto const& layer = trainer.module().layer;
  most =
      std::fmax(most, distance(layer->weight, tensor_in(final.at("weight"), {4, 5}, at::kDouble)));
  return std::fmax(most, distance(layer->bias, tensor_in(final.at("bias"), {4}, at::kDouble)));
}

TEST_CASE("padded micro-batches with ignored labels train as PyTorch does without padding") {
  CHECK(apart("float64", 2, Accumulate<3>{}) < 1e-12);
  CHECK(apart("float32", 2, Accumulate<3>{}) < 1e-6);
}

TEST_CASE("one padded batch, and one that is split, train so as well") {
  CHECK(apart("float64", 6) < 1e-12);
  CHECK(apart("float64", 6, Accumulate<frugal::Auto>{.samples = 2}) < 1e-12);
}

TEST_CASE("AutoBatch tries the padded batch that needs most memory, not that of most labels") {
  auto const ones = [](std::int64_t length) {
    return Sequence{at::ones({length, 5}), at::zeros({length}, at::kLong)};
  };
  auto source = frugal::from_samples(std::vector{ones(6), ones(6), ones(1), ones(9)},
                                     {.batch = 2, .shuffle = false}, frugal::Pad{});
  auto const largest = frugal::detail::largest_batch(source, 4);
  CHECK(largest->data.size(1) == 9);
}

/// Batches of four samples, whose labels count or do not.
std::vector<Batch> labelled(std::vector<bool> const& count) {
  std::vector<Batch> batches = batches_of_sizes(std::vector<std::int64_t>(count.size(), 4));
  for (std::size_t i = 0; i < count.size(); ++i) {
    if (!count[i]) batches[i].target.fill_(-100);
  }
  return batches;
}

TEST_CASE("a micro-batch without a label that counts changes nothing in its window") {
  auto const trained = [](std::vector<Batch> const& batches) {
    Trainer trainer{Net{}, CrossEntropy{}, Settings{}, frugal::Optimize<frugal::SGD>{.lr = 0.1},
                    Accumulate<2>{}};
    auto const report = trainer.fit(batches);
    CHECK(std::isfinite(report.train_loss));
    return copy_of(trainer.module());
  };
  auto const batches = labelled({false, true, true, false});
  auto const with = trained(batches);
  Trainer trainer{Net{}, CrossEntropy{}, Settings{}, frugal::Optimize<frugal::SGD>{.lr = 0.1}};
  static_cast<void>(trainer.fit(std::vector<Batch>{batches[1], batches[2]}));
  auto const without = copy_of(trainer.module());
  for (std::size_t i = 0; i < with.size(); ++i) CHECK(distance(with[i], without[i]) < 1e-15);
}

TEST_CASE("a window without a label that counts is an error that names its step") {
  Trainer trainer{Net{}, CrossEntropy{}, Settings{}, frugal::Optimize<frugal::SGD>{}};
  auto const error =
      thrown_by<frugal::ZeroWeightError>([&] { trainer.fit(labelled({true, true, false, true})); });
  REQUIRE(error);
  CHECK(error->fault().what == "the weights of a window's losses sum to zero");
  CHECK(error->fault().where == "epoch 0, step 2");
  CHECK(error->window.position == 8);
  CHECK(error->window.step == 2);
  for (at::Tensor const& tensor : trainer.module().parameters()) {
    CHECK_FALSE(tensor.grad().defined());
  }
}

TEST_CASE("Rollback passes over a window without a label that counts") {
  Trainer trainer{Net{}, CrossEntropy{}, Settings{}, frugal::Optimize<frugal::SGD>{},
                  frugal::Rollback<>{}};
  auto const report = trainer.fit(labelled({true, true, false, true}));
  CHECK(report.steps == 3);
}

TEST_CASE("pairs of tensors are trained on, validated and predicted as batches are") {
  std::vector<std::pair<at::Tensor, at::Tensor>> pairs;
  auto const batches = batches_of_sizes({4, 4, 3});
  for (Batch const& each : batches) pairs.emplace_back(each.data, each.target);
  auto const trained = [](auto const& of) {
    Trainer trainer{Net{}, CrossEntropy{}, Settings{.epochs = 2},
                    frugal::Optimize<frugal::SGD>{.lr = 0.1}};
    static_cast<void>(trainer.fit(of, of));
    std::vector<at::Tensor> all = copy_of(trainer.module());
    trainer.predict(of, [&](at::Tensor const& output, auto const&) { all.push_back(output); });
    all.push_back(at::scalar_tensor(trainer.evaluate(of)["loss"], at::kDouble));
    return all;
  };
  CHECK(same(trained(pairs), trained(batches)));
}

}  // namespace frugal_test::loop_padding
