// SPDX-License-Identifier: Apache-2.0
// Steps that an overflow undoes on the device alone: in a recipe with FP16 and a GPU.
#include <doctest/doctest.h>

#include <ATen/CPUGeneratorImpl.h>

#include <frugal/core/state/state_dict.hpp>
#include <frugal/core/state/state_writer.hpp>
#include <frugal/policy/optimize.hpp>

#include "support/running.hpp"

namespace frugal_test::policy_optimize_fused_bucket {

using frugal::Optimize;
using frugal::SGD;

/// Two parameters in one bucket, and the numbers from which their gradients are drawn.
struct Pair {
  Pair() {
    at::NoGradGuard const no_gradients;
    for (std::string const name : {"a", "b"}) {
      parameters.names.push_back(name);
      parameters.tensors.push_back(at::linspace(-1, 1, 5).requires_grad_());
      bucket.add(name, parameters.tensors.back());
    }
  }

  /// `overflow` is 0 or 1; without it there is no flag.
  void step(int number, bool of_both, std::optional<double> overflow) {
    at::NoGradGuard const no_gradients;
    auto random = at::make_generator<at::CPUGeneratorImpl>(static_cast<std::uint64_t>(number));
    for (std::size_t i = 0; i < 2; ++i) {
      at::Tensor const gradient = at::randn({5}, random);
      parameters.tensors[i].mutable_grad() = i == 0 || of_both ? gradient : at::Tensor();
    }
    frugal::GradientList gradients;
    gradients.collect(parameters);
    at::Tensor const factor = at::ones({}, at::kDouble);
    bucket.step(rule, gradients, factor,
                overflow ? at::full({}, *overflow, at::kFloat) : at::Tensor());
  }

  void save() {
    frugal::StateDict memory;
    frugal::StateWriter writer(memory);
    bucket.persist(rule, writer);
  }

  frugal::Parameters parameters;
  Optimize<SGD> rule{.lr = 0.1, .momentum = 0.9, .dampening = 0.5};
  frugal::detail::FusedBucket bucket{0.1, 0.01, 1};
};

struct Step {
  bool of_both;
  bool overflows;
};

/// Steps that overflow leave no trace: the result is that of the other steps alone.
void leaves_no_trace(std::vector<Step> const& steps) {
  Pair with;
  Pair without;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    int const number = static_cast<int>(i);
    with.step(number, steps[i].of_both, steps[i].overflows ? 1 : 0);
    if (!steps[i].overflows) without.step(number, steps[i].of_both, std::nullopt);
  }
  for (std::size_t i = 0; i < 2; ++i) {
    CHECK(support::same_bits({{"", with.parameters.tensors[i]}},
                             {{"", without.parameters.tensors[i]}}));
  }
}

TEST_CASE("SGD with dampening: a first step that overflows is not the first") {
  leaves_no_trace({{true, false}, {true, false}, {true, false}});
  leaves_no_trace({{true, true}, {true, true}, {true, false}, {true, true}, {true, false}});
}

TEST_CASE("SGD with dampening: so it is if a parameter begins later than the others") {
  leaves_no_trace({{false, true}, {false, false}, {true, true}, {true, false}, {true, false}});
  leaves_no_trace({{false, false}, {true, true}, {false, true}, {true, false}, {true, true}});
}

TEST_CASE("SGD with dampening takes two kernels per step until a save has read its counters") {
  Pair pair;
  auto const kernels = [&](int number) {
    return support::operators_of([&] { pair.step(number, true, 0); }).at("aten::_fused_sgd_");
  };
  CHECK(kernels(0) == 2);
  CHECK(kernels(1) == 2);
  pair.save();
  CHECK(kernels(2) == 1);
  Pair undampened;
  undampened.rule.dampening = 0;
  CHECK(support::operators_of([&] { undampened.step(0, true, 0); }).at("aten::_fused_sgd_") == 1);
}

}  // namespace frugal_test::policy_optimize_fused_bucket
