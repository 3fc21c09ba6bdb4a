// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <frugal/policy/finite_state.hpp>

#include <torch/nn/module.h>

#include <limits>

namespace frugal_test::policy_finite_state {

using frugal::StateDict;
using frugal::detail::FiniteState;

constexpr float infinity = std::numeric_limits<float>::infinity();

struct Net : torch::nn::Module {
  Net() {
    weight = register_parameter("weight", at::full({2}, infinity));
    mask = register_buffer("mask", at::full({2}, -infinity));
    mean = register_buffer("mean", at::zeros({2}));
    frozen = register_parameter("frozen", at::full({2}, infinity), false);
  }
  at::Tensor weight, mask, mean, frozen;
};

TEST_CASE("constants that are not finite from the start are left out; trained parameters never") {
  Net net;
  FiniteState finite;
  finite.begin(net);
  CHECK(finite.covers_weight("weight"));
  CHECK(finite.covers_weight("mean"));
  CHECK_FALSE(finite.covers_weight("mask"));
  CHECK_FALSE(finite.covers_weight("frozen"));
}

TEST_CASE("of the state only the optimizer's tensors are looked at") {
  CHECK(FiniteState::covers_state("policies/Optimize/0.weight/exp_avg"));
  CHECK_FALSE(FiniteState::covers_state("policies/Importance/losses"));
  CHECK_FALSE(FiniteState::covers_state("policies/Optimizer/x"));
  CHECK_FALSE(FiniteState::covers_state("generators/cpu"));
}

TEST_CASE("the first tensor that must be finite and is not has its name told") {
  FiniteState const finite;
  at::Tensor const bad = at::full({2}, infinity);
  StateDict const fine{.values = {}, .tensors = {{"a", at::zeros({2})}}};
  StateDict const wrong{.values = {}, .tensors = {{"a", at::zeros({2})}, {"b", bad}, {"c", bad}}};
  StateDict const moments{.values = {}, .tensors = {{"policies/Optimize/a/exp_avg", bad}}};
  StateDict const others{.values = {}, .tensors = {{"policies/Importance/a", bad}}};
  CHECK_FALSE(finite.first_bad(fine, others));
  CHECK(finite.first_bad(wrong, moments) == "b");
  CHECK(finite.first_bad(fine, moments) == "policies/Optimize/a/exp_avg");
}

}  // namespace frugal_test::policy_finite_state
