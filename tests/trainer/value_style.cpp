// SPDX-License-Identifier: Apache-2.0
// A trainer written as values: types are deduced, and what has a default is left out.
#include <doctest/doctest.h>

#include <frugal/frugal.hpp>

#include <concepts>
#include <memory>

#include "support/running.hpp"

namespace frugal_test::trainer_value_style {

using namespace frugal;
using namespace frugal_test::support;

using Module = std::shared_ptr<Mlp>;

TEST_CASE("a trainer of values has their types for its recipe") {
  Trainer trainer{std::make_shared<Mlp>(),       CrossEntropy{},
                  Settings{.epochs = 2},         Optimize<AdamW>{.lr = 3e-4},
                  Schedule<Warmup<5>, Cosine>{}, Checkpoint<Every<500>>{.share = 0.1}};
  CHECK(std::same_as<decltype(trainer),
                     Trainer<Module, CrossEntropy, Optimize<AdamW>, Schedule<Warmup<5>, Cosine>,
                             Checkpoint<Every<500>>>>);
  CHECK(trainer.settings().epochs == 2);
  CHECK(trainer.optimizer().lr == 3e-4);
  CHECK(trainer.checkpoint().share == 0.1);
}

TEST_CASE("settings may be left out, or written in braces") {
  Trainer without{std::make_shared<Mlp>(), CrossEntropy{}, Optimize<SGD>{.lr = 0.5}, ClipNorm<>{}};
  CHECK(std::same_as<decltype(without), Trainer<Module, CrossEntropy, Optimize<SGD>, ClipNorm<>>>);
  CHECK(without.optimizer().lr == 0.5);
  CHECK(!without.settings().epochs);
  Trainer braces{std::make_shared<Mlp>(), CrossEntropy{}, {.epochs = 3}, Optimize<SGD>{}};
  CHECK(std::same_as<decltype(braces), Trainer<Module, CrossEntropy, Optimize<SGD>>>);
  CHECK(braces.settings().epochs == 3);
}

TEST_CASE("a recipe may stand among the values") {
  using Lean = Recipe<Precision<BF16>, ClipNorm<>>;
  Trainer trainer{std::make_shared<Mlp>(), CrossEntropy{}, Lean{}, Optimize<SGD>{.lr = 0.5}};
  CHECK(std::same_as<decltype(trainer), Trainer<Module, CrossEntropy, Lean, Optimize<SGD>>>);
  CHECK(trainer.optimizer().lr == 0.5);
}

TEST_CASE("arguments that have defaults are not written") {
  Trainer trainer{std::make_shared<Mlp>(),
                  CrossEntropy{},
                  Settings{},
                  Optimize<SGD>{},
                  ClipNorm{.max_norm = 0.5},
                  EarlyStop{.min_delta = 0.01},
                  Average{.rule = Ema<0.99>{}},
                  Validate{},
                  Checkpoint{.share = 0.05},
                  Log{},
                  DryRun{}};
  CHECK(std::same_as<decltype(trainer),
                     Trainer<Module, CrossEntropy, Optimize<SGD>, ClipNorm<>, EarlyStop<>,
                             Average<Ema<0.99>>, Validate<>, Checkpoint<>, Log<>, DryRun<>>>);
  CHECK(trainer.clip().max_norm == 0.5);
  CHECK(trainer.early_stop().min_delta == 0.01);
}

}  // namespace frugal_test::trainer_value_style
