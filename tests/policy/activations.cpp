// SPDX-License-Identifier: Apache-2.0
// Shapes: B rows, F = 64 features.
#include <doctest/doctest.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/normalization.h>

#include <frugal/policy/accumulate.hpp>
#include <frugal/policy/activations.hpp>
#include <frugal/policy/optimize.hpp>
#include <frugal/policy/recompute.hpp>
#include <frugal/policy/validate.hpp>
#include <frugal/trainer.hpp>
#include <thread>

#include "support/live_bytes.hpp"
#include "support/running.hpp"

namespace frugal_test::policy_activations {

using namespace frugal_test::support;
namespace fr = frugal;
namespace nn = torch::nn;
using fr::detail::PackedAs;
using Tensors = std::vector<at::Tensor>;

constexpr std::int64_t features = 64;
constexpr std::int64_t b = 32;

at::Tensor rows(std::uint32_t stream = 0) { return table({b, features}, 80, stream); }

/// The gradient of x through `body`, with saved tensors packed as `Format`; void: unpacked.
template <class Format, class Body>
at::Tensor gradient(Body const& body) {
  at::Tensor const x = rows().requires_grad_();
  at::Tensor loss;
  if constexpr (std::is_void_v<Format>) {
    loss = body(x).square().sum();
  } else {
    fr::detail::Packing<PackedAs<Format>> packing;
    fr::detail::SavedTensorsScope const scope(&packing);
    loss = body(x).square().sum();
  }
  loss.backward();
  return x.grad();
}

/// Views with every kind of memory layout.
at::Tensor entangled(at::Tensor const& x_BF) {
  at::Tensor const h_BF = x_BF.tanh();
  auto const parts = h_BF.mul(1.5).chunk(2, 1);
  at::Tensor const product_BB = parts[0].matmul(parts[1].t());
  at::Tensor const tall = h_BF.t().contiguous().t().exp();
  at::Tensor const wide = h_BF.sum(0, /*keepdim=*/true).expand({b, features});
  at::Tensor const stepped = h_BF.slice(1, 0, features, 2).sin();
  return product_BB.sum(1, true) * tall + wide * tall.sigmoid() +
         stepped.repeat({1, 2}) * h_BF.view({b, 8, 8}).transpose(1, 2).reshape({b, features});
}

TEST_CASE("Offload gives the plain gradients, bit for bit, for every memory layout") {
  CHECK(at::allclose(gradient<fr::Offload>(entangled), gradient<void>(entangled), 1e-6, 0));
  auto const simple = [](at::Tensor const& x) { return x.tanh().exp() * x.sigmoid(); };
  CHECK(at::equal(gradient<fr::Offload>(simple), gradient<void>(simple)));
}

TEST_CASE("gradients in 16 bits are those of rounded activations") {
  at::Tensor const plain = gradient<void>(entangled);
  at::Tensor const half = gradient<fr::BF16>(entangled);
  CHECK_FALSE(at::equal(half, plain));
  CHECK((half - plain).norm().item<double>() < 0.01 * plain.norm().item<double>());
  auto const tanh = [](at::Tensor const& x) { return x.tanh(); };
  at::Tensor const y = rows().tanh();
  auto const of_rounded = [&](at::ScalarType type) {
    at::Tensor const rounded = y.to(type).to(at::kFloat);
    return 2 * rounded * (1 - rounded.square());
  };
  CHECK(at::allclose(gradient<fr::BF16>(tanh), of_rounded(at::kBFloat16), 1e-6, 1e-6));
  CHECK(at::allclose(gradient<fr::FP16>(tanh), of_rounded(at::kHalf), 1e-6, 1e-6));
  // FP16 has three bits more.
  at::Tensor const finer = gradient<fr::FP16>(entangled);
  CHECK((finer - plain).norm().item<double>() < 0.25 * (half - plain).norm().item<double>());
}

TEST_CASE("parameters, their views, batches, integers and small statistics are not packed") {
  nn::Linear linear(features, features);
  nn::LayerNorm norm(nn::LayerNormOptions({features}));
  at::Tensor const x = rows();
  at::Tensor const index = at::arange(b);
  LiveBytes const live;
  fr::detail::Packing<PackedAs<fr::BF16>> packing;
  fr::detail::SavedTensorsScope const scope(&packing);
  // This saves the batch and the transposed weight, not the result.
  at::Tensor const h = linear(x);
  CHECK(live.now() == b * features * 4);
  // Saves indices, and the logarithms of a softmax.
  at::Tensor const selected = h.index_select(0, index).log_softmax(1);
  CHECK(live.now() == 2 * b * features * 4);
  // Saves the input in half precision; mean and deviation are rows of one element.
  at::Tensor const normal = norm(h);
  CHECK(live.now() == 3 * b * features * 4 + b * features * 2 + 2 * b * 4);
}

TEST_CASE("a tensor that is saved several times is packed once") {
  at::Tensor const x = rows().requires_grad_();
  fr::detail::Packing<PackedAs<fr::BF16>> packing;
  fr::detail::SavedTensorsScope const scope(&packing);
  LiveBytes const live;
  at::Tensor h = x.relu();
  at::Tensor const sums = h.sin().sum() + h.view({features, b}).exp().sum() +
                          h.view({b, 8, 8}).permute({2, 0, 1}).cos().sum();
  h.reset();
  // relu's result and the inputs of sin and cos are one tensor; exp keeps its result. Sums are
  // small.
  CHECK(live.now() <= 2 * b * features * 2 + 1024);
  CHECK(live.now() >= 2 * b * features * 2);
  sums.backward();
}

TEST_CASE("a tensor changed in place after packing unpacks with the saved value") {
  auto const late = [](bool packed) {
    at::Tensor const x = rows().requires_grad_();
    fr::detail::Packing<PackedAs<fr::Offload>> packing;
    fr::detail::SavedTensorsScope const scope(packed ? &packing : nullptr);
    at::Tensor h = x * 1;
    at::Tensor const sine = h.sin();
    at::Tensor const cosine = (packed ? h.mul_(2) : h.mul(2)).cos();
    (sine + cosine).sum().backward();
    return x.grad();
  };
  CHECK(at::equal(late(true), late(false)));
}

TEST_CASE("a parameter that is changed in place before backward is refused, as by LibTorch") {
  nn::Linear linear(features, features);
  at::Tensor const x = rows().requires_grad_();
  fr::detail::Packing<PackedAs<fr::BF16>> packing;
  fr::detail::SavedTensorsScope const scope(&packing);
  at::Tensor const y = linear(x).sum();
  {
    at::NoGradGuard const no_gradients;
    linear->weight.mul_(2);
  }
  CHECK_THROWS_WITH_AS(y.backward(), doctest::Contains("was changed in place"), fr::ModuleError);
}

TEST_CASE("a retained graph unpacks again, in another thread as well") {
  at::Tensor const x = rows().requires_grad_();
  at::Tensor loss;
  {
    fr::detail::Packing<PackedAs<fr::Offload>> packing;
    fr::detail::SavedTensorsScope const scope(&packing);
    loss = x.tanh().exp().sum();
  }
  std::thread([&] { loss.backward({}, /*retain_graph=*/true); }).join();
  at::Tensor const once = x.grad().clone();
  loss.backward();
  CHECK(at::equal(x.grad(), once * 2));
}

TEST_CASE("nothing is left of a graph without a backward pass") {
  LiveBytes const live;
  at::Tensor const x = rows().requires_grad_();
  std::int64_t const before = live.now();
  for (int i = 0; i < 3; ++i) {
    fr::detail::Packing<PackedAs<fr::BF16>> packing;
    fr::detail::SavedTensorsScope const scope(&packing);
    at::Tensor const y = x.tanh().exp();
  }
  CHECK(live.now() == before);
}

// ---- the policy ---------------------------------------------------------------------------------

nn::Sequential network() {
  at::manual_seed(1);
  return nn::Sequential(nn::Linear(features, 128), nn::GELU(), nn::Linear(128, 128), nn::GELU(),
                        nn::Linear(128, features));
}

std::vector<fr::Batch> batches() {
  std::vector<fr::Batch> all;
  for (std::uint32_t i = 0; i < 5; ++i) all.push_back({rows(2 * i), rows(2 * i + 1)});
  return all;
}

/// The losses of 20 steps.
template <class... Ps>
std::vector<double> train(Ps const&... policies) {
  Seen seen;
  fr::Trainer trainer{network(),
                      fr::MeanSquaredError{},
                      fr::Settings{.epochs = 100, .steps = 20},
                      fr::Optimize<fr::AdamW>{},
                      Spy{.seen = &seen},
                      policies...};
  static_cast<void>(trainer.fit(batches()));
  return seen.losses;
}

double apart(std::vector<double> const& a, std::vector<double> const& c) {
  REQUIRE(a.size() == c.size());
  double most = 0;
  for (std::size_t i = 0; i < a.size(); ++i) most = std::max(most, std::abs(a[i] - c[i]));
  return most;
}

TEST_CASE("20 steps in 16 bits stay close to those without, alone and with others") {
  auto const plain = train();
  auto const half = train(fr::Activations<fr::BF16>{});
  CHECK(half != plain);
  CHECK(apart(half, plain) < 1e-3);
  CHECK(apart(train(fr::Activations<fr::FP16>{}), plain) < 1e-3);
  CHECK(apart(train(fr::Activations<fr::BF16>{}, fr::Recompute<fr::Segments<2>>{}), plain) < 1e-3);
  CHECK(apart(train(fr::Activations<fr::BF16>{}, fr::Accumulate<2>{}), train(fr::Accumulate<2>{})) <
        1e-3);
}

TEST_CASE("on the CPU Offload changes nothing, and says so once") {
  CHECK(train(fr::Activations<fr::Offload>{}) == train());
  fr::Trainer trainer{network(), fr::MeanSquaredError{}, fr::Settings{.epochs = 2},
                      fr::Optimize<fr::SGD>{}, fr::Activations<fr::Offload>{}};
  auto const report = trainer.fit(batches());
  REQUIRE(report.warnings.size() == 1);
  CHECK(report.warnings[0].find("does nothing on the CPU") != std::string::npos);
}

TEST_CASE("hooks are there in training passes alone, and removed after one that throws") {
  struct Watching {
    std::vector<bool>* hooked;
    fr::Loss operator()(nn::Sequential& module, fr::Batch const& batch) const {
      hooked->push_back(fr::detail::saved_tensors != nullptr);
      if (hooked->size() == 3) throw std::runtime_error("out");
      return fr::MeanSquaredError{}(module, batch);
    }
  };
  std::vector<bool> hooked;
  fr::Trainer trainer{network(),
                      Watching{&hooked},
                      fr::Settings{.epochs = 2},
                      fr::Optimize<fr::SGD>{},
                      fr::Activations<fr::BF16>{},
                      fr::Validate<fr::SanityBatches<0>>{}};
  auto one = batches();
  one.resize(1);
  CHECK_THROWS_AS(trainer.fit(one, one), std::runtime_error);
  CHECK((hooked == std::vector{true, false, true}));
  CHECK(fr::detail::saved_tensors == nullptr);
}

}  // namespace frugal_test::policy_activations
