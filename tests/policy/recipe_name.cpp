// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <frugal/frugal.hpp>

#include <string_view>

#include "support/running.hpp"

namespace frugal_test::trainer_recipe_name {

using namespace frugal;
using namespace frugal_test::support;

/// Two user-defined policies: one with a declared name, one without.
struct Cheese {
  struct kind : optional_kind {
    static constexpr std::string_view name = "Cheese";
  };
  using listens = list<>;
  static constexpr std::string_view label = "cheese";
};
template <int N>
struct Bread {
  struct kind : optional_kind {
    static constexpr std::string_view name = "Bread";
  };
  using listens = list<>;
};

using Lean = Recipe<Optimize<SGD>, ClipNorm<0.5>>;

}  // namespace frugal_test::trainer_recipe_name

template <>
inline constexpr std::string_view frugal::recipe_label<frugal_test::trainer_recipe_name::Lean> =
    "lean";

namespace frugal_test::trainer_recipe_name {

TEST_CASE("a recipe is named by its policies, the optimizer first") {
  CHECK(recipe_name<Recipe<Precision<BF16>, Accumulate<4>, Optimize<AdamW>, Average<>>>() ==
        "AdamW + BF16 + Accumulate<4> + Ema");
  CHECK(recipe_name<Recipe<Optimize<SGD>, Schedule<Warmup<100>, Cosine>>>() ==
        "SGD + Warmup<100> + Cosine");
  CHECK(recipe_name<Recipe<Optimize<AdamW>, Activations<Offload>, Recompute<>>>() ==
        "AdamW + Activations<Offload> + Recompute");
}

TEST_CASE("the name contains only explicit choices") {
  CHECK(recipe_name<Recipe<Optimize<AdamW>, ClipNorm<>>>() == "AdamW + ClipNorm");
  CHECK(recipe_name<Recipe<Optimize<AdamW>, ClipNorm<0.5>>>() == "AdamW + ClipNorm<0.5>");
  CHECK(recipe_name<Recipe<Optimize<AdamW>, Average<Ema<0.99>>>>() == "AdamW + Ema<0.99>");
  CHECK(recipe_name<Recipe<Optimize<AdamW>, Precision<FP32>, Accumulate<1>, Validate<>>>() ==
        "AdamW");
  CHECK(recipe_name<Recipe<>>() == "defaults");
}

TEST_CASE("policies that only watch are left out") {
  CHECK(recipe_name<Recipe<Optimize<AdamW>, Log<>, Progress<>, Throughput<>>>() == "AdamW");
  CHECK(recipe_name<Recipe<Optimize<AdamW>, EarlyStop<Patience<5>, WatchAccuracy>>>() ==
        "AdamW + EarlyStop<Patience<5>, WatchAccuracy>");
}

TEST_CASE("recipes in recipes and trainers have the name of their policies") {
  using Inner = Recipe<Precision<BF16>, Accumulate<2>>;
  CHECK(recipe_name<Recipe<Inner, Optimize<AdamW>>>() == "AdamW + BF16 + Accumulate<2>");
  using Of = Trainer<std::shared_ptr<Mlp>, CrossEntropy, Optimize<AdamW>, Inner>;
  CHECK(recipe_name<Of>() == "AdamW + BF16 + Accumulate<2>");
}

TEST_CASE("a user-defined policy has its label, or the name of its type") {
  CHECK(recipe_name<Recipe<Optimize<SGD>, Cheese>>() == "SGD + cheese");
  CHECK(recipe_name<Recipe<Optimize<SGD>, Bread<3>>>() == "SGD + Bread<3>");
}

TEST_CASE("a recipe may be given a name, and a trainer another") {
  CHECK(recipe_name<Lean>() == "lean");
  Trainer trainer{std::make_shared<Mlp>(), CrossEntropy{}, Settings{}, Optimize<SGD>{},
                  ClipNorm<0.5>{}};
  CHECK(trainer.name() == "lean");
  trainer.settings().name = "third try";
  CHECK(trainer.name() == "third try");
}

}  // namespace frugal_test::trainer_recipe_name
