// SPDX-License-Identifier: Apache-2.0
#include <frugal/model/alternate.hpp>

#include <doctest/doctest.h>

#include <frugal/frugal.hpp>
#include <frugal/policy/optimize/partition.hpp>
#include <frugal/report/plan_memory.hpp>

#include "support/files.hpp"

#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/adamw.h>
#include <torch/optim/sgd.h>

#include <cstdint>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

namespace frugal_test::model_alternate {

using namespace frugal;

/// Two networks that compete, with statistics of batches. In double precision: Adam divides by the size of a gradient, and
/// makes differences of rounding as large as a step. A bias before BatchNorm would have nothing but these.
struct PairImpl : torch::nn::Module {
  PairImpl() {
    generator = register_module(
        "generator",
        torch::nn::Sequential(torch::nn::Linear(torch::nn::LinearOptions(3, 8).bias(false)),
                              torch::nn::BatchNorm1d(8), torch::nn::Linear(8, 2)));
    critic = register_module(
        "critic", torch::nn::Sequential(torch::nn::Linear(2, 8), torch::nn::Linear(8, 1)));
    to(at::kDouble);
  }
  torch::nn::Sequential generator{nullptr}, critic{nullptr};
};
TORCH_MODULE(Pair);

at::Tensor critic_loss(PairImpl& pair, at::Tensor const& noise, at::Tensor const& real) {
  at::Tensor const fake = pair.generator->forward(noise);
  return at::softplus(pair.critic->forward(fake)).mean() +
         at::softplus(-pair.critic->forward(real)).mean();
}
at::Tensor generator_loss(PairImpl& pair, at::Tensor const& noise) {
  return at::softplus(-pair.critic->forward(pair.generator->forward(noise))).mean();
}

/// Writes down whose turn it is, and in which window.
struct Game {
  std::string* turns = nullptr;

  template <class B>
  Loss operator()(Pair& pair, B const& batch) const {
    bool const criticises = trains(pair->critic);
    if (turns != nullptr) *turns += criticises ? (trains(pair->generator) ? 'b' : 'c') : 'g';
    at::Tensor const loss = criticises ? critic_loss(*pair, batch.data, batch.target)
                                       : generator_loss(*pair, batch.data);
    return {.value = loss, .scalars = {{criticises ? "critic" : "generator", loss}}};
  }
};

Pair pair() {
  return seeded(1, [] { return Pair(); });
}
TensorDataset data() {
  return seeded(2, [] {
    return TensorDataset(torch::randn({48, 3}, at::kDouble), torch::randn({48, 2}, at::kDouble),
                         {.batch = 8, .shuffle = false});
  });
}
using Turns = Alternate<Turn<Where<"critic.*">, 2>, Turn<Where<"generator.*">>>;

double distance(torch::nn::Module const& a, torch::nn::Module const& b) {
  double most = 0;
  auto const other = b.named_parameters();
  for (auto const& item : a.named_parameters()) {
    most = std::max(most, (item.value() - other[item.key()]).abs().max().item<double>());
  }
  for (auto const& item : a.named_buffers()) {
    most =
        std::max(most, (item.value() - b.named_buffers()[item.key()]).abs().max().item<double>());
  }
  return most;
}

/// 12 steps of a recipe and of two optimizers by hand.
template <class Policy, class Critic>
void compare_with_hand(Policy const& policy, Pair& theirs, Critic&& critic) {
  std::string turns;
  Pair const ours = pair();
  {
    auto train = data();
    Trainer trainer{ours, Game{&turns}, Settings{.epochs = 2}, policy, Turns{}};
    Report const report = trainer.fit(train);
    CHECK(report.steps == 12);
  }
  CHECK(turns == "ccgccgccgccg");

  torch::optim::AdamW generator(theirs->generator->parameters(),
                                torch::optim::AdamWOptions(0.01).weight_decay(0.01));
  auto train = data();
  theirs->train();
  for (int step = 0; step < 12; ++step) {
    train.seek({0, static_cast<std::uint64_t>(step / 6), static_cast<std::uint64_t>(step % 6 * 8)});
    auto const batch = *train.next();
    theirs->zero_grad();
    if (step % 3 < 2) {
      critic_loss(*theirs, batch.data, batch.target).backward();
      critic.step();
    } else {
      generator_loss(*theirs, batch.data).backward();
      generator.step();
    }
  }
  CHECK(distance(*ours, *theirs) < 1e-9);
  CHECK(distance(*ours, *pair()) > 1e-3);
}

TEST_CASE("turns train as two optimizers in a loop by hand do") {
  Pair theirs = pair();
  compare_with_hand(Optimize<AdamW>{.lr = 0.01}, theirs,
                    torch::optim::AdamW(theirs->critic->parameters(),
                                        torch::optim::AdamWOptions(0.01).weight_decay(0.01)));
}

TEST_CASE("turns train with two kinds of optimizers, too") {
  Pair theirs = pair();
  compare_with_hand(
      Optimize<Partition<SGD, AdamW>>{
          .select = {"critic.*"}, .first = {.lr = 0.05, .momentum = 0.9}, .rest = {.lr = 0.01}},
      theirs,
      torch::optim::SGD(theirs->critic->parameters(),
                        torch::optim::SGDOptions(0.05).momentum(0.9)));
}

TEST_CASE("a run that is stopped in any turn goes on with it, to the same bits") {
  auto const weights = [](std::vector<std::uint64_t> const& ends, std::string* turns) {
    support::TemporaryFolder const folder;
    Pair module{nullptr};
    for (std::uint64_t const end : ends) {
      module = pair();
      auto train = data();
      Trainer trainer{module,
                      Game{turns},
                      Settings{.run_dir = folder.path(), .epochs = 2, .steps = end},
                      Optimize<AdamW>{.lr = 0.01},
                      Turns{},
                      Checkpoint<Every<100>>{}};
      static_cast<void>(trainer.fit(train));
    }
    return module;
  };
  std::string turns;
  Pair const whole = weights({12}, nullptr);
  Pair const parts = weights({1, 2, 3, 7, 12}, &turns);
  CHECK(turns == "ccgccgccgccg");
  CHECK(distance(*whole, *parts) == 0);
}

TEST_CASE("a validation sees all parts awake, and at the end requires_grad is as it was") {
  std::string turns;
  Pair const module = pair();
  module->critic->parameters()[0].set_requires_grad(false);
  auto train = data();
  auto valid = data();
  Trainer trainer{module,
                  Game{&turns},
                  Settings{.epochs = 1},
                  Optimize<AdamW>{.lr = 0.01},
                  Turns{},
                  ClipNorm<0.1>{},
                  Validate<Every<3>, SanityBatches<0>>{}};
  Report const report = trainer.fit(train, valid);
  CHECK(turns == "ccgbbbbbbccgbbbbbb");
  CHECK(report.validations.size() == 2);
  std::size_t trained = 0;
  for (at::Tensor const& each : module->parameters()) trained += each.requires_grad() ? 1U : 0U;
  CHECK(trained == module->parameters().size() - 1);
  CHECK_FALSE(module->critic->parameters()[0].requires_grad());

  auto failing = [&] {
    Trainer broken{module,
                   [](Pair& of, auto const& batch) -> at::Tensor {
                     if (!trains(of->critic)) throw std::runtime_error("mine");
                     return critic_loss(*of, batch.data, batch.target);
                   },
                   Settings{.epochs = 1}, Optimize<AdamW>{}, Turns{}};
    static_cast<void>(broken.fit(train));
  };
  CHECK_THROWS_AS(failing(), std::runtime_error);
  CHECK(trains(module->critic));
  CHECK(trains(module->generator));
}

TEST_CASE(
    "the number of steps in a row is a member, and micro-batches of a window are of one turn") {
  std::string turns;
  auto train = data();
  Turns policy;
  std::get<0>(policy.turns).steps = 1;
  Trainer trainer{pair(),          Game{&turns}, Settings{.epochs = 1}, Optimize<AdamW>{.lr = 0.01},
                  Accumulate<2>{}, policy};
  static_cast<void>(trainer.fit(train));
  CHECK(turns == "ccggcc");
}

struct TiedImpl : torch::nn::Module {
  TiedImpl() {
    a = register_module("a", torch::nn::Linear(2, 2));
    b = register_module("b", torch::nn::Linear(2, 2));
    b->weight = a->weight;
    b->register_parameter("weight_too", a->weight);
  }
  torch::nn::Linear a{nullptr}, b{nullptr};
};

TEST_CASE("turns that select nothing, or one parameter together, are refused") {
  auto const tensors = [](auto&& module, std::vector<NamePatterns> const& turns) {
    return frugal::detail::tensors_of_turns(module, turns);
  };
  Pair module = pair();
  CHECK(tensors(*module, {NamePatterns{"critic.*"}, NamePatterns{"generator.*"}})[1].size() == 5);
  CHECK_THROWS_WITH_AS(tensors(*module, {NamePatterns{"critic.*"}, NamePatterns{"decoder.*"}}),
                       doctest::Contains("decoder"), SettingsError);
  CHECK_THROWS_WITH_AS(tensors(*module, {NamePatterns{"critic.*"}, NamePatterns{"*.0.weight"}}),
                       doctest::Contains("two turns train one parameter"), SettingsError);
  TiedImpl tied;
  CHECK_THROWS_WITH_AS(tensors(tied, {NamePatterns{"a.*"}, NamePatterns{"b.*"}}),
                       doctest::Contains("the two names are of one tensor"), SettingsError);
  auto train = data();
  Turns none;
  std::get<1>(none.turns).steps = 0;
  Trainer trainer{module, Game{}, Settings{}, Optimize<AdamW>{}, none};
  CHECK_THROWS_AS(static_cast<void>(trainer.fit(train)), SettingsError);
}

/// The critic sees fakes without their graph, as GANs do, and the generator's turn needs more memory.
struct Detached {
  template <class B>
  Loss operator()(Pair& pair, B const& batch) const {
    if (!trains(pair->critic)) return {.value = generator_loss(*pair, batch.data.repeat({64, 1}))};
    at::Tensor const fake = pair->generator->forward(batch.data).detach();
    return {.value = at::softplus(pair->critic->forward(fake)).mean()};
  }
};

TEST_CASE("a dry run and a plan of the memory are of all turns") {
  TensorDataset one(torch::randn({8, 3}, at::kDouble), torch::randn({8, 2}, at::kDouble),
                    {.batch = 8});
  Trainer turns{pair(), Detached{}, Settings{}, Optimize<AdamW>{}, Turns{}};
  std::ostringstream checks;
  CHECK(turns.dry_run(one, checks));
  CAPTURE(checks.str());
  CHECK(checks.str().find("2 batches") != std::string::npos);

  Trainer none{pair(), Detached{}, Settings{}, Optimize<AdamW>{}};
  CHECK_FALSE(none.dry_run(one, checks));
  one.seek({0, 0, 0});
  auto const batch = *one.next();
  CHECK(plan_memory(turns, batch).pass_peak > 4 * plan_memory(none, batch).pass_peak);
  CHECK(trains(turns.module()->critic));
}

}  // namespace frugal_test::model_alternate
