// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>

#include <frugal/model/freeze.hpp>
#include <frugal/policy/average.hpp>
#include <frugal/policy/checkpoint.hpp>
#include <frugal/policy/checkpoint/find.hpp>
#include <frugal/policy/optimize.hpp>
#include <frugal/report/plan_memory.hpp>
#include <frugal/trainer.hpp>

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "support/files.hpp"
#include "support/running.hpp"

namespace frugal_test::model_freeze {

using namespace frugal_test::support;
using namespace frugal;
namespace k = frugal::kinds;

torch::nn::Sequential network() {
  torch::manual_seed(5);
  torch::nn::Sequential net(torch::nn::Linear(6, 8), torch::nn::BatchNorm1d(8), torch::nn::ReLU(),
                            torch::nn::Linear(8, 8), torch::nn::BatchNorm1d(8), torch::nn::ReLU(),
                            torch::nn::Linear(8, 3));
  return net;
}
TensorDataset batches(bool shuffle = true) {
  torch::manual_seed(6);
  return TensorDataset(torch::randn({48, 6}) + 1, torch::randint(0, 3, {48}),
                       {.batch = 8, .shuffle = shuffle});
}
std::map<std::string, at::Tensor> tensors(torch::nn::Sequential const& net) {
  std::map<std::string, at::Tensor> all;
  for (auto const& item : net->named_parameters())
    all.emplace(item.key(), item.value().detach().clone());
  for (auto const& item : net->named_buffers()) all.emplace(item.key(), item.value().clone());
  return all;
}
std::vector<std::string> changed(std::map<std::string, at::Tensor> const& before,
                                 torch::nn::Sequential const& net) {
  std::vector<std::string> names;
  for (auto const& [name, tensor] : tensors(net)) {
    if (!at::equal(tensor, before.at(name))) names.push_back(name);
  }
  return names;
}

TEST_CASE("frozen layers keep parameters and statistics, whatever calls train()") {
  torch::nn::Sequential net = network();
  auto const before = tensors(net);
  Trainer trainer{net,
                  [](auto& module, Batch const& batch) {
                    Loss loss = CrossEntropy{}(module, batch);
                    module->train();
                    return loss;
                  },
                  Settings{.epochs = 2},
                  Optimize<AdamW>{},
                  Freeze<Where<"0.*", "1.*", "3.*">>{},
                  Average<Ema<>>{}};
  static_cast<void>(trainer.fit(batches()));
  CHECK(changed(before, net) == std::vector<std::string>{"4.bias", "4.num_batches_tracked",
                                                         "4.running_mean", "4.running_var",
                                                         "4.weight", "6.bias", "6.weight"});
  for (auto const& item : net->named_parameters()) {
    CHECK(item.value().requires_grad() == (item.key() >= "4"));
    CHECK((!item.value().grad().defined()));
  }
  auto const& averaged = trainer.policy<k::average>().weights().tensors;
  CHECK(!averaged.contains("0.weight"));
  CHECK(averaged.contains("6.weight"));
}

TEST_CASE(
    "what is trained equals what PyTorch's recipe trains: no gradient, and eval() of the layer") {
  torch::nn::Sequential net = network();
  Trainer trainer{net, CrossEntropy{}, Settings{.epochs = 1}, Optimize<AdamW>{.lr = 1e-2},
                  Freeze<Where<"0.*", "1.*">>{}};
  static_cast<void>(trainer.fit(batches()));
  torch::nn::Sequential hand = network();
  for (auto& item : hand->named_parameters()) {
    if (item.key() < "2") item.value().set_requires_grad(false);
  }
  Trainer other{hand,
                [](auto& module, Batch const& batch) {
                  module->children()[1]->eval();
                  return CrossEntropy{}(module, batch);
                },
                Settings{.epochs = 1}, Optimize<AdamW>{.lr = 1e-2}};
  static_cast<void>(other.fit(batches()));
  auto const all = tensors(hand);
  CHECK(changed(all, net).empty());
}

TEST_CASE("checkpoints leave the frozen out, know them by their hash, and resume exactly") {
  auto const trained = [](torch::nn::Sequential net, std::filesystem::path const& run,
                          std::uint64_t steps) {
    Trainer trainer{net,
                    CrossEntropy{},
                    Settings{.run_dir = run, .epochs = 9, .steps = steps},
                    Optimize<AdamW>{},
                    Freeze<Where<"0.*", "1.*">>{},
                    Checkpoint<Every<5>>{}};
    static_cast<void>(trainer.fit(batches()));
    return net;
  };
  TemporaryFolder const folder;
  auto const whole = trained(network(), folder / "whole", 20);
  trained(network(), folder / "cut", 8);
  CHECK(changed(tensors(whole), trained(network(), folder / "cut", 20)).empty());
  std::string const newest = latest_checkpoint((folder / "cut").string());
  Safetensors const saved = Safetensors::open(std::filesystem::path(newest) / "model.safetensors");
  CHECK(!saved.find("0.weight"));
  CHECK(saved.find("3.weight"));
  Safetensors const states =
      Safetensors::open(std::filesystem::path(newest) / "optimizer.safetensors");
  for (std::size_t i = 0; i < states.size(); ++i) {
    CHECK(states[i].name.find("/0.weight") == std::string_view::npos);
  }
  auto other = network();
  {
    at::NoGradGuard const no_gradients;
    other->parameters()[0][0][0] += 1;
  }
  CHECK_THROWS_WITH_AS(trained(other, folder / "cut", 24), doctest::Contains("their hash is"),
                       StateError);
}

TEST_CASE("a write to a frozen parameter during the run is an error at the next save") {
  TemporaryFolder const folder;
  auto net = network();
  Trainer trainer{net,
                  [&](auto& module, Batch const& batch) {
                    at::NoGradGuard const no_gradients;
                    module->parameters()[0].mul_(1.5);
                    at::AutoGradMode const gradients(true);
                    return CrossEntropy{}(module, batch);
                  },
                  Settings{.run_dir = folder / "run", .steps = 4},
                  Optimize<AdamW>{},
                  Freeze<Where<"0.*">>{},
                  Checkpoint<Every<2>>{}};
  CHECK_THROWS_WITH_AS(trainer.fit(batches()), doctest::Contains("was written to"), StateError);
}

TEST_CASE("layers are unfrozen one after the other, and a resumed run freezes what it froze") {
  using Policy = Unfreeze<Where<"3.*", "0.*">, Every<1, Epoch>>;
  auto const trained = [](torch::nn::Sequential net, std::filesystem::path const& run,
                          std::uint64_t steps) {
    Trainer trainer{net,
                    CrossEntropy{},
                    Settings{.run_dir = run, .epochs = 4, .steps = steps},
                    Optimize<AdamW>{},
                    Freeze<Where<"0.*", "1.*", "3.*">>{},
                    Policy{},
                    Checkpoint<Every<2>>{}};
    static_cast<void>(trainer.fit(batches()));
    return net;
  };
  TemporaryFolder const folder;
  auto const begun = tensors(network());
  auto const whole = trained(network(), folder / "whole", 24);
  // An epoch has six steps.
  for (std::uint64_t const cut : {3U, 6U, 9U, 12U, 15U, 23U}) {
    CAPTURE(cut);
    std::filesystem::path const run = folder / std::to_string(cut);
    auto const part = trained(network(), run, cut);
    auto const names = changed(begun, part);
    auto const moved = [&](char const* name) { return std::ranges::count(names, name) == 1; };
    CHECK(moved("6.weight"));
    CHECK(moved("3.weight") == (cut > 6));
    CHECK(moved("0.weight") == (cut > 12));
    CHECK(!moved("1.weight"));
    auto const resumed = trained(network(), run, 24);
    CHECK(changed(tensors(whole), resumed).empty());
    for (auto const& item : resumed->named_parameters()) {
      CHECK(item.value().requires_grad() == whole->named_parameters()[item.key()].requires_grad());
    }
  }
}

TEST_CASE("an evaluation between two fits leaves what is unfrozen as it is") {
  auto net = network();
  Trainer trainer{net,
                  CrossEntropy{},
                  Settings{.epochs = 2},
                  Optimize<AdamW>{},
                  Freeze<Where<"0.*", "3.*">>{},
                  Unfreeze<Where<"3.*">>{}};
  static_cast<void>(trainer.fit(batches()));
  CHECK(net->named_parameters()["3.weight"].requires_grad());
  static_cast<void>(trainer.evaluate(batches()));
  CHECK(net->named_parameters()["3.weight"].requires_grad());
  CHECK(!net->named_parameters()["0.weight"].requires_grad());
}

/// Each part's mode, and each parameter's requires_grad.
std::map<std::string, bool> state_of(torch::nn::Sequential const& net) {
  std::map<std::string, bool> all;
  for (auto const& item : net->named_modules())
    all[item.key() + " trains"] = item.value()->is_training();
  for (auto const& item : net->named_parameters()) all[item.key()] = item.value().requires_grad();
  return all;
}

TEST_CASE("an unfrozen BatchNorm is that of a loop by hand: held for an epoch, and then trained") {
  torch::nn::Sequential net = network();
  auto const begun = state_of(net);
  Trainer trainer{net, CrossEntropy{}, Settings{.epochs = 3}, Optimize<SGD>{.lr = 0.1},
                  Unfreeze<Where<"1.*">>{}};
  static_cast<void>(trainer.fit(batches(false)));
  torch::nn::Sequential hand = network();
  bool frozen = true;
  Trainer other{hand,
                [&](auto& module, Batch const& batch) {
                  module->children()[1]->train(!frozen);
                  return CrossEntropy{}(module, batch);
                },
                Settings{.epochs = 1}, Optimize<SGD>{.lr = 0.1}};
  for (int epoch = 0; epoch < 3; ++epoch) {
    frozen = epoch == 0;
    for (at::Tensor const& each : hand->children()[1]->parameters())
      each.set_requires_grad(!frozen);
    static_cast<void>(other.fit(batches(false)));
  }
  CHECK(changed(tensors(hand), net).empty());
  CHECK(state_of(net) == begun);
  // Stopped before anything is unfrozen, and by an error.
  trainer.settings().steps = 3;
  net->eval();
  auto const evaluating = state_of(net);
  static_cast<void>(trainer.fit(batches()));
  CHECK(state_of(net) == evaluating);
  CHECK_THROWS_AS(trainer.fit(TensorDataset(torch::randn({8, 5}), torch::randint(0, 3, {8}))),
                  Error);
  CHECK(state_of(net) == evaluating);
}

TEST_CASE("statistics are kept by what is frozen, whoever froze it, in each fit and not beyond") {
  std::vector<std::string> const kept{
      "0.bias",         "0.weight",      "1.bias",  "1.num_batches_tracked",
      "1.running_mean", "1.running_var", "1.weight"};
  auto const keeps = [&](torch::nn::Sequential const& net, auto&& call) {
    auto const before = tensors(net);
    call();
    auto const names = changed(before, net);
    std::size_t count = 0;
    for (std::string const& each : kept) count += std::ranges::count(names, each) == 0 ? 1 : 0;
    return count;
  };
  torch::nn::Sequential net = network();
  Trainer plain{net, CrossEntropy{}, Settings{.epochs = 1}, Optimize<AdamW>{}};
  Trainer freezing{net, CrossEntropy{}, Settings{.epochs = 1}, Optimize<AdamW>{},
                   Freeze<Where<"0.*", "1.*">>{}};
  auto const fit = [&](auto& trainer) {
    return keeps(net, [&] { static_cast<void>(trainer.fit(batches())); });
  };
  auto const release = [&] {
    for (at::Tensor const& each : net->parameters()) {
      unfix_tensor(each);
      each.set_requires_grad(true);
    }
  };
  freeze(*net, Where<"0.*", "1.*">{});
  CHECK(fit(plain) == kept.size());
  CHECK(keeps(net, [&] { update_batch_norm(net, batches()); }) == kept.size());
  release();
  CHECK(fit(plain) == 0);
  CHECK(keeps(net, [&] { update_batch_norm(net, batches()); }) == 5);  // of as many batches
  // A recipe's Freeze freezes, also what was released once; other recipes go by what it left.
  CHECK(fit(freezing) == kept.size());
  CHECK(net->children()[1]->is_training());
  CHECK(fit(plain) == kept.size());
  release();
  CHECK(fit(plain) == 0);
  CHECK(fit(freezing) == kept.size());
}

TEST_CASE("a plan counts gradients, moments and checkpoints of what is trained") {
  auto net = network();
  Trainer plain{net, CrossEntropy{}, Settings{}, Optimize<AdamW>{}};
  auto const batch = *batches().next();
  RecipeMemory const whole = plan_memory(plain, batch);
  Trainer frozen{net, CrossEntropy{}, Settings{}, Optimize<AdamW>{}, Freeze<Where<"0.*", "3.*">>{}};
  RecipeMemory const part = plan_memory(frozen, batch);
  CHECK(part.weights == whole.weights);
  std::uint64_t const left = 4 * (8 + 8 + 8 + 8 + 8 * 3 + 3);
  CHECK(part.gradients == left);
  CHECK(part.optimizer_state == 2 * left);
  CHECK(part.checkpoint < whole.checkpoint);
}

TEST_CASE("patterns that select nothing, and modules with nothing to train, are errors") {
  auto net = network();
  CHECK_THROWS_WITH_AS(freeze(*net, Where<"encoder.*">{}), doctest::Contains("encoder.*"),
                       SettingsError);
  Trainer trainer{net, CrossEntropy{}, Settings{}, Optimize<AdamW>{}, Freeze<Where<"*">>{}};
  CHECK_THROWS_WITH_AS(trainer.fit(batches()), doctest::Contains("all are fixed"), ModuleError);
}

TEST_CASE("a weight that was assigned to a layer is frozen by the names of both, and saved once") {
  struct Tied : torch::nn::Module {
    torch::nn::Linear first{register_module("first", torch::nn::Linear(6, 6))};
    torch::nn::Linear second{register_module("second", torch::nn::Linear(6, 6))};
    at::Tensor forward(at::Tensor const& x) { return second(first(x).relu()); }
  };
  auto const net = std::make_shared<Tied>();
  net->second->weight = net->first->weight;
  at::Tensor const before = net->first->weight.detach().clone();
  Trainer trainer{net, CrossEntropy{}, Settings{}, Optimize<AdamW>{},
                  Freeze<Where<"second.weight">>{}};
  CHECK(plan_memory(trainer, *batches().next()).weights == (6 * 6 + 6 + 6) * 4);
  trainer.fit(batches());
  CHECK(at::equal(net->first->weight, before));
  CHECK(Parameters::of(*net).names == std::vector<std::string>{"first.bias", "second.bias"});
}

}  // namespace frugal_test::model_freeze
