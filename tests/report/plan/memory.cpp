// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <doctest/doctest.h>

#include <frugal/error.hpp>
#include <frugal/report/plan/memory.hpp>

namespace frugal_test::plan_memory {

using namespace frugal::plan;

// Rajbhandari et al., "ZeRO" (2020), section 3.1: Adam in mixed precision keeps 2 + 2 + 12 = 16
// bytes for each parameter, at least 24 GB for the 1.5e9 parameters of GPT-2.
static_assert(bytes_per_parameter(Keeping::half_and_master, 8).all() == 16);
static_assert(estimate(MemoryInputs{.parameters = 1.5e9,
                                    .per = bytes_per_parameter(Keeping::half_and_master, 8)})
                  .all() == 24e9);
static_assert(bytes_per_parameter(Keeping::fp32, 8).all() == 16);
static_assert(bytes_per_parameter(Keeping::fp32, 0).all() == 8);
static_assert(bytes_per_parameter(Keeping::autocast, 8).all() == 18);

TEST_CASE("the parts add up, and a checkpoint has neither gradients nor activations nor copies") {
  MemoryEstimate const got = estimate(MemoryInputs{.parameters = 1000,
                                                   .buffers = 64,
                                                   .per = bytes_per_parameter(Keeping::autocast, 8),
                                                   .averages = 1,
                                                   .activations = 5000});
  CHECK(got.weights == 6000);
  CHECK(got.gradients == 4000);
  CHECK(got.optimizer == 8000);
  CHECK(got.averages == 4000);
  CHECK(got.all() == 6000 + 4000 + 8000 + 4000 + 5000 + 64);
  CHECK(got.checkpoint() == 4000 + 8000 + 4000 + 64);
}

TEST_CASE("frozen parameters have neither gradients nor optimizer state") {
  MemoryInputs in{.parameters = 1000, .per = bytes_per_parameter(Keeping::fp32, 8)};
  MemoryEstimate const all = estimate(in);
  in.frozen = 900;
  MemoryEstimate const few = estimate(in);
  CHECK(few.weights == all.weights);
  CHECK(few.gradients == 400);
  CHECK(few.optimizer == 800);
  in.frozen = 1001;
  CHECK_THROWS_AS(estimate(in), frugal::SettingsError);
  CHECK_THROWS_AS(estimate(MemoryInputs{.parameters = -1}), frugal::SettingsError);
}

TEST_CASE("an optimizer's state is found by its name, in any case") {
  CHECK(optimizer_bytes("adamw") == 8);
  CHECK(optimizer_bytes("SGD") == 0);
  CHECK(optimizer_bytes("SGD with momentum") == 4);
  CHECK_THROWS_WITH_AS(optimizer_bytes("AdanW"), doctest::Contains("near it are AdamW"),
                       frugal::SettingsError);
}

}  // namespace frugal_test::plan_memory
