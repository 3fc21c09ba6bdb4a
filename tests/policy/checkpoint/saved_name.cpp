// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <frugal/core/compose/recipe.hpp>
#include <frugal/policy/accumulate.hpp>
#include <frugal/policy/accumulate/split.hpp>
#include <frugal/policy/checkpoint/saved_name.hpp>
#include <frugal/policy/clip.hpp>
#include <frugal/policy/cuda_graph.hpp>
#include <frugal/policy/optimize/fused.hpp>
#include <frugal/policy/precision.hpp>
#include <frugal/policy/schedule.hpp>
#include <frugal/policy/validate.hpp>

#include <string>
#include <string_view>

namespace frugal_test::checkpoint_saved_name {

using namespace frugal;
using namespace frugal::literals;
using frugal::detail::portable_name;
using frugal::detail::saved_name;

/// A declared name; arguments in unspecified order.
struct Mine {
  static constexpr std::string_view identity = "Mine, with cheese";
};
template <class T, class U, int N>
struct Odd {};

// A constant expression with g++, so that compiling this file proves it; clang with g++ 12's
// library cannot evaluate a std::string in one.
#if defined(__clang__)
#define NAMED(text, ...) CHECK(saved_name<__VA_ARGS__>() == (text))
#else
#define NAMED(text, ...) static_assert(saved_name<__VA_ARGS__>() == (text))
#endif

TEST_CASE("every compiler gives a recipe the same name") {
  NAMED("Accumulate<8>", Accumulate<8>);
  NAMED("Accumulate<Auto>", Accumulate<Auto>);
  NAMED("Optimize<AdamW>", Optimize<AdamW>);
  NAMED("Precision<FromEnv<FP32, BF16>>", Precision<FromEnv<FP32, BF16>>);
  NAMED("NoClip", NoClip);
  NAMED("ClipNorm<1/2>", ClipNorm<0.5_r>);
  NAMED("Schedule<>", Schedule<>);
  NAMED("Validate<Every<1, Epoch>>", Validate<>);
  NAMED("Validate<Every<500, OptimizerStep>, Accuracy>", Validate<Every<500>, Accuracy>);
  NAMED("Every<Auto, OptimizerStep>", Every<Auto>);
  NAMED("MultiStepDecay<1/10, 30, 60>", MultiStepDecay<0.1_r, 30, 60>);
  NAMED("Schedule<Warmup<10>, Plateau<1/2, Patience<2>, Watch<'accuracy', 1>>>",
        Schedule<Warmup<10>, Plateau<0.5_r, Patience<2>, WatchAccuracy>>);
  NAMED("Ramp<-1/2, 1/1, 0>", Ramp<Rational{-1, 2}, 1_r, 0>);
  NAMED("Mine, with cheese", Mine);
  NAMED("Recipe<Mine, with cheese>", frugal::Recipe<Mine>);
}

TEST_CASE("options have one order in a name, whatever the order in which they are written") {
  NAMED("Validate<Every<1, Epoch>, Accuracy>", Validate<Accuracy>);
  NAMED("Validate<Every<1, Epoch>, Accuracy>", Validate<Accuracy, Every<1, Epoch>>);
  NAMED("Schedule<Plateau<1/10, Patience<10>, Watch<'loss', 0>>>", Schedule<Plateau<>>);
  NAMED("Schedule<Plateau<1/2, Patience<2>, Watch<'accuracy', 1>>>",
        Schedule<Plateau<0.5_r, WatchAccuracy, Patience<2>>>);
  NAMED("CudaGraph<WholeStep, NoCapture>", CudaGraph<NoCapture, WholeStep>);
}

TEST_CASE("policies with other arguments have other names") {
  CHECK(saved_name<ClipNorm<0.5_r>>() != saved_name<ClipNorm<0.25_r>>());
  CHECK(saved_name<Watch<"a", Better::lower>>() != saved_name<Watch<"a", Better::higher>>());
  CHECK(saved_name<Watch<"a", Better::lower>>() != saved_name<Watch<"b", Better::lower>>());
  CHECK(saved_name<Schedule<Warmup<10>>>() != saved_name<Schedule<Warmup<20>>>());
  CHECK(saved_name<Odd<int, float, 1>>() != saved_name<Odd<int, float, 2>>());
}

TEST_CASE("a slot has the name of its policy") {
  auto const slots = frugal::detail::slots_of(list<Accumulate<2>, ClipNorm<0.5_r>>{});
  REQUIRE(slots.size() == 2);
  CHECK(slots.at("Accumulate") == "Accumulate<2>");
  CHECK(slots.at("Clip") == "ClipNorm<1/2>");
}

TEST_CASE("known differences in compilers' spelling are removed from the names that they spell") {
  CHECK(portable_name("frugal::Accumulate<8ul>") == "Accumulate<8>");
  CHECK(portable_name("frugal::Accumulate< 8>") == "Accumulate<8>");
  CHECK(portable_name("frugal::Every<frugal::Automatic()>") == "Every<Auto>");
}

}  // namespace frugal_test::checkpoint_saved_name
