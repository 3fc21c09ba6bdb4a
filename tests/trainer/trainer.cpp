// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <torch/csrc/autograd/variable.h>
#include <torch/nn/modules/container/sequential.h>
#include <frugal/policy/checkpoint.hpp>
#include <frugal/policy/early_stop.hpp>
#include <frugal/policy/optimize.hpp>
#include <frugal/policy/spot.hpp>
#include <frugal/trainer.hpp>

#include "core/loop/stand_ins.hpp"
#include "support/files.hpp"

#include <array>
#include <concepts>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>

namespace frugal_test::trainer_trainer {

using namespace frugal_test::loop;
using Sgd = Optimize<SGD>;

TEST_CASE("a trainer's type may be named, its policies in their defaults") {
  Trainer<Net, CrossEntropy, Sgd, Accumulate<2>> trainer{Net{}, {.epochs = 2}};
  Report const report = trainer.fit(batches_of_sizes({4, 4, 4}));
  CHECK(report.steps == 4);
  CHECK(trainer.policy<kinds::optimizer>().lr == 1e-3);
}

TEST_CASE("a trainer's type may be deduced from the values of its policies") {
  Trainer trainer{Net{}, CrossEntropy{}, Settings{.epochs = 2}, Sgd{.lr = 0.5}, Accumulate<2>{}};
  CHECK((std::is_same_v<decltype(trainer), Trainer<Net, CrossEntropy, Sgd, Accumulate<2>>>));
  CHECK(trainer.policy<kinds::optimizer>().lr == 0.5);
  CHECK(trainer.settings().epochs == 2);
}

TEST_CASE("values go to their types in any order of the recipe, and the rest keep defaults") {
  Trainer<Net, CrossEntropy, EarlyStop<>, Recipe<Accumulate<2>, Recipe<Sgd>>> trainer{
      Net{}, {}, Settings{}, Sgd{.momentum = 0.9}, EarlyStop<>{.min_delta = 0.25}};
  CHECK(trainer.policy<kinds::optimizer>().momentum == 0.9);
  CHECK(trainer.policy<kinds::optimizer>().lr == 1e-3);
  CHECK(trainer.policy<kinds::early_stop>().min_delta == 0.25);
}

TEST_CASE("a recipe may be one of the values from which the type is deduced") {
  using Base = Recipe<Sgd, Accumulate<2>>;
  Trainer trainer{Net{}, CrossEntropy{}, Settings{}, Base{}};
  CHECK((std::is_same_v<decltype(trainer), Trainer<Net, CrossEntropy, Base>>));
  CHECK(trainer.fit(batches_of_sizes({4, 4})).steps == 1);
}

TEST_CASE("a module by value is trained in the trainer, which returns it") {
  Net net;
  auto const before = copy_of(net);
  Trainer trainer{std::move(net), CrossEntropy{}, Settings{}, Sgd{.lr = 0.1}};
  static_cast<void>(trainer.fit(batches_of_sizes({4})));
  CHECK_FALSE(same(copy_of(trainer.module()), before));
}

TEST_CASE("a holder, a shared pointer and a Sequential are trained in place") {
  auto const shared = std::make_shared<Net>();
  torch::nn::Linear holder(4, 3);
  holder->to(at::kDouble);
  torch::nn::Sequential sequential{torch::nn::Linear(4, 3)};
  sequential->to(at::kDouble);
  auto const moves = [](auto const& module) {
    auto const before = copy_of(base_module(module));
    Trainer trainer{module, CrossEntropy{}, Settings{}, Sgd{.lr = 0.1}};
    static_cast<void>(trainer.fit(batches_of_sizes({4})));
    return !same(copy_of(base_module(module)), before);
  };
  CHECK(moves(shared));
  CHECK(moves(holder));
  CHECK(moves(sequential));
}

TEST_CASE(
    "a trainer without settings trains one epoch on the CPU, with the values of its policies") {
  Trainer without{Net{}, CrossEntropy{}, Sgd{.lr = 0.1}, Accumulate<2>{}};
  static_assert(std::is_same_v<decltype(without), Trainer<Net, CrossEntropy, Sgd, Accumulate<2>>>);
  Trainer with{Net{}, CrossEntropy{}, Settings{}, Sgd{.lr = 0.1}, Accumulate<2>{}};
  CHECK(without.fit(batches_of_sizes({4, 4})).epochs == 1);
  static_cast<void>(with.fit(batches_of_sizes({4, 4})));
  CHECK(same(copy_of(without.module()), copy_of(with.module())));
  // The types may be named, too.
  Trainer<Net, CrossEntropy, Sgd> named{Net{}, CrossEntropy{}, Sgd{.lr = 0.1}};
  CHECK(named.policy<kinds::optimizer>().lr == 0.1);
}

TEST_CASE("an empty holder is an error of fit and no crash") {
  Trainer trainer{torch::nn::Linear(nullptr), CrossEntropy{}, Settings{}, Sgd{}};
  CHECK_THROWS_AS(trainer.fit(batches_of_sizes({4})), ModuleError);
}

TEST_CASE("objectives are any callable that returns a tensor or a Loss") {
  auto const tensor = [](Net& net, Batch const& batch) {
    return at::cross_entropy_loss(net.forward(batch.data), batch.target);
  };
  auto const loss = [](Net& net, Batch const& batch) {
    return Loss{.value = at::cross_entropy_loss(net.forward(batch.data), batch.target),
                .weight = 2};
  };
  Trainer one{Net{}, tensor, Settings{}, Sgd{.lr = 0.1}};
  Trainer two{Net{}, loss, Settings{}, Sgd{.lr = 0.1}};
  static_cast<void>(one.fit(batches_of_sizes({4, 4})));
  static_cast<void>(two.fit(batches_of_sizes({4, 4})));
  CHECK(same(copy_of(one.module()), copy_of(two.module())));
}

TEST_CASE("an objective's weight decides how much its micro-batch counts") {
  auto const weighing = [](double second) {
    return [second, calls = 0](Net& net, Batch const& batch) mutable {
      return Loss{.value = at::cross_entropy_loss(net.forward(batch.data), batch.target),
                  .weight = calls++ == 0 ? 1.0 : second};
    };
  };
  auto const trained = [&](double second) {
    Trainer trainer{Net{}, weighing(second), Settings{}, Sgd{.lr = 0.1}, Accumulate<2>{}};
    static_cast<void>(trainer.fit(batches_of_sizes({4, 4})));
    return copy_of(trainer.module());
  };
  CHECK(same(trained(1.0), trained(1.0)));
  CHECK_FALSE(same(trained(1.0), trained(3.0)));
}

struct Pair {
  at::Tensor left, right;
};
}  // namespace frugal_test::trainer_trainer

template <>
struct frugal::batch_traits<frugal_test::trainer_trainer::Pair> {
  using Pair = frugal_test::trainer_trainer::Pair;
  static std::int64_t samples(Pair const& pair) { return pair.left.size(0); }
  static std::int64_t tokens(Pair const& pair) { return 2 * pair.left.size(0); }
  static void to(Pair&, at::Device) {}
};

namespace frugal_test::trainer_trainer {

TEST_CASE("a user-defined batch type needs its traits and nothing else") {
  std::vector<Pair> const pairs{{at::ones({3, 4}, at::kDouble), at::zeros({3, 4}, at::kDouble)},
                                {at::ones({2, 4}, at::kDouble), at::zeros({2, 4}, at::kDouble)}};
  auto const distance = [](Net& net, Pair const& pair) {
    return at::mse_loss(net.forward(pair.left), net.forward(pair.right) + 1);
  };
  Trainer trainer{Net{}, distance, Settings{}, Sgd{}};
  CHECK(trainer.fit(pairs).samples == 5);
}

TEST_CASE("bare tensors are batches") {
  std::vector<at::Tensor> const batches{at::ones({3, 4}, at::kDouble),
                                        at::ones({2, 4}, at::kDouble)};
  auto const objective = [](Net& net, at::Tensor const& data) {
    return net.forward(data).square().mean();
  };
  Trainer trainer{Net{}, objective, Settings{}, Sgd{}};
  CHECK(trainer.fit(batches).samples == 5);
}

TEST_CASE("batches may come as an lvalue, a constant or a temporary") {
  Trainer trainer{Net{}, CrossEntropy{}, Settings{}, Sgd{}};
  auto batches = batches_of_sizes({4, 4});
  CHECK(trainer.fit(batches).steps == 2);
  CHECK(trainer.fit(std::as_const(batches)).steps == 2);
  CHECK(trainer.fit(batches_of_sizes({4, 4})).steps == 2);
  CHECK(trainer.fit(batches, batches_of_sizes({3})).validations.size() == 1);
}

TEST_CASE("a second fit continues with the weights and restarts the counts") {
  auto const train = batches_of_sizes({4, 4});
  Trainer twice{Net{}, CrossEntropy{}, Settings{}, Sgd{.lr = 0.1}};
  static_cast<void>(twice.fit(train));
  Report const second = twice.fit(train);
  CHECK(second.epochs == 1);
  CHECK(second.steps == 2);
  REQUIRE(second.warnings.size() == 1);
  CHECK(says(second.warnings[0], "this trainer was fitted before with this seed"));
  Trainer once{Net{}, CrossEntropy{}, Settings{.epochs = 2}, Sgd{.lr = 0.1}};
  static_cast<void>(once.fit(train));
  CHECK(same(copy_of(twice.module()), copy_of(once.module())));
  twice.settings().seed = 1;  // other random numbers, so on purpose
  CHECK(twice.fit(train).warnings.empty());
}

TEST_CASE("a second fit of a run at its end trains nothing, and says so") {
  support::TemporaryFolder const folder;
  auto const train = batches_of_sizes({4, 4});
  Trainer trainer{Net{}, CrossEntropy{}, Settings{.run_dir = folder.path()}, Sgd{.lr = 0.1},
                  Checkpoint<>{}};
  CHECK(trainer.fit(train).warnings.empty());
  Report const second = trainer.fit(train);
  REQUIRE(second.warnings.size() == 1);
  CHECK(says(second.warnings[0], "the run was at its last step, 2, so this fit trained nothing"));
  trainer.settings().epochs = 2;
  Report const third = trainer.fit(train);
  CHECK(third.steps == 4);
  CHECK(third.warnings.empty());
}

TEST_CASE("a policy's settings may be changed between fits") {
  auto const train = batches_of_sizes({4, 4});
  Trainer trainer{Net{}, CrossEntropy{}, Settings{}, Sgd{.lr = 0.1}};
  trainer.policy<kinds::optimizer>().lr = 0;
  auto const before = copy_of(trainer.module());
  static_cast<void>(trainer.fit(train));
  CHECK(same(copy_of(trainer.module()), before));
  trainer.policy<kinds::optimizer>().lr = 0.1;
  trainer.settings().epochs = 3;
  CHECK(trainer.fit(train).steps == 6);
  CHECK_FALSE(same(copy_of(trainer.module()), before));
}

TEST_CASE("the policy that stopped a run is named, and every subscriber has seen the event") {
  auto const train = batches_of_sizes({4, 4});
  Trainer trainer{Net{}, CrossEntropy{}, Settings{.epochs = 50}, Optimize<Nothing>{},
                  EarlyStop<Patience<2>>{}};
  Report const report = trainer.fit(train, batches_of_sizes({4}));
  CHECK(report.stopped_by == "EarlyStop");
  CHECK(report.epochs == 3);
  CHECK(report.validations.size() == 3);
}

// The recipe of a job on preemptible machines.
using P0 = Precision<BF16>;
using P1 = Accumulate<8>;
using P2 = Checkpoint<Every<500>>;
using P3 = EarlyStop<Patience<3>>;
using P4 = Spot<SigtermSave>;
using Production = list<P0, P1, P2, P3, P4>;

constexpr std::array<std::size_t, 5> permutation(std::size_t which) {
  std::array<std::size_t, 5> order{0, 1, 2, 3, 4};
  for (std::size_t i = 0; i < 5; ++i) {
    std::size_t const pick = i + which % (5 - i);
    which /= 5 - i;
    std::size_t const chosen = order[pick];
    for (std::size_t j = pick; j > i; --j) order[j] = order[j - 1];
    order[i] = chosen;
  }
  return order;
}
template <std::size_t Which, std::size_t... Is>
auto in_order(std::index_sequence<Is...>) -> Recipe<type_at<Production, permutation(Which)[Is]>...>;
template <std::size_t Which>
using recipe_in_order = decltype(in_order<Which>(std::make_index_sequence<5>{}));

template <class R>
using engine_of = typename frugal::detail::context_of<
    Net, frugal::detail::composed<slots, typename R::policies>>::type::engine;

template <std::size_t... Which>
constexpr bool all_legal(std::index_sequence<Which...>) {
  return (recipe_in_order<Which>::legal && ...);
}
template <std::size_t... Which>
constexpr bool all_one_engine(std::index_sequence<Which...>) {
  return (std::is_same_v<engine_of<recipe_in_order<Which>>, engine_of<recipe_in_order<0>>> && ...);
}

TEST_CASE("the production recipe is legal in all its 120 orders, and all share one engine type") {
  CHECK_FALSE(std::is_same_v<recipe_in_order<0>, recipe_in_order<119>>);
  CHECK(all_legal(std::make_index_sequence<120>{}));
  CHECK(all_one_engine(std::make_index_sequence<120>{}));
}

TEST_CASE("Spot without Checkpoint is illegal, with a sentence that says what to add") {
  CHECK_FALSE(Recipe<P0, P1, P3, P4>::legal);
  CHECK(Recipe<P0, P1, P3, P4>::fault ==
        "frugal: Spot needs Checkpoint: there is nothing to save to. Add Checkpoint<Every<500>>.");
}

TEST_CASE("the production recipe trains, written in two orders, to the same weights") {
  auto const trained = []<class... Ps>(std::type_identity<Recipe<Ps...>>) {
    support::TemporaryFolder const folder;
    Trainer<std::shared_ptr<Net>, CrossEntropy, Sgd, Ps...> trainer{
        std::make_shared<Net>(1, at::kFloat), {.run_dir = folder.path(), .epochs = 2}};
    Report const report = trainer.fit(batches_of_sizes({4, 4, 4, 4, 4, 4, 4, 4, 4}, at::kFloat),
                                      batches_of_sizes({4}, at::kFloat));
    CHECK(report.steps == 4);
    CHECK(report.samples == 72);
    return copy_of(*trainer.module());
  };
  CHECK(same(trained(std::type_identity<Recipe<P0, P1, P2, P3, P4>>{}),
             trained(std::type_identity<Recipe<P4, P2, P0, P3, P1>>{})));
}

/// Guards that do not call what they surround.
struct LeavesOutFit {
  struct kind : optional_kind {
    static constexpr std::string_view name = "LeavesOutFit";
  };
  using listens = list<around::fit>;
  struct State {
    explicit State(LeavesOutFit const&) {}
    template <class Next>
    void around_fit(FitRun const&, Next&&) {}
  };
};
struct LeavesOutEpoch {
  struct kind : optional_kind {
    static constexpr std::string_view name = "LeavesOutEpoch";
  };
  using listens = list<around::epoch>;
  struct State {
    explicit State(LeavesOutEpoch const&) {}
    template <class Next>
    void around_epoch(EpochRun const&, Next&&) {}
  };
};

TEST_CASE("a guard that does not call next() is an error that names its hook") {
  auto const fit = [](auto guard) {
    Trainer trainer{Net{}, CrossEntropy{}, Settings{}, Sgd{}, guard};
    static_cast<void>(trainer.fit(batches_of_sizes({4})));
  };
  CHECK_THROWS_WITH_AS(fit(LeavesOutFit{}), doctest::Contains("(around_fit)"), PolicyError);
  CHECK_THROWS_WITH_AS(fit(LeavesOutEpoch{}), doctest::Contains("(around_epoch)"), PolicyError);
}

/// Throws an exception that is no frugal Error.
struct Spoils {
  struct kind : optional_kind {
    static constexpr std::string_view name = "Spoils";
  };
  using listens = list<on::module>;
  struct State {
    using transient = void;
    explicit State(Spoils const&) {}
    void on_module(ModuleSetup&) const { throw std::runtime_error("no adapter for this layer"); }
  };
};

TEST_CASE("a dry run reports any fault of a policy in on_module") {
  Trainer trainer{std::make_shared<Net>(), CrossEntropy{}, Settings{}, Sgd{}, Spoils{}};
  std::ostringstream out;
  CHECK_FALSE(trainer.dry_run(batches_of_sizes({4, 4}), out));
  CHECK(std::move(out).str().find("no adapter for this layer") != std::string::npos);
}

}  // namespace frugal_test::trainer_trainer
