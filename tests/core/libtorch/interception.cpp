// SPDX-License-Identifier: Apache-2.0
#include <frugal/core/libtorch/interception.hpp>

#include <ATen/autocast_mode.h>
#include <doctest/doctest.h>
#include <torch/torch.h>

#include <memory>
#include <thread>
#include <vector>

namespace fr = frugal;

namespace {

/// Adds a number to every output, and remembers the calls.
struct Shift : fr::LayerHook {
  explicit Shift(double by, Place at = Place::adapt) : by_(by), at_(at) {}
  Place place() const override { return at_; }
  at::Tensor call(fr::LayerCall const& call, fr::LayerRest const& rest) override {
    ++calls;
    last = call.op;
    at::Tensor out = rest(call);
    return by_ == 0 ? out : out + by_;
  }
  int calls = 0;
  fr::LayerCall::Operator last{};

 private:
  double by_;
  Place at_;
};

template <class Layer, class... Inputs>
void shifts_by_two(Layer& layer, Inputs const&... inputs) {
  at::Tensor const plain = layer->forward(inputs...);
  auto const hook = std::make_shared<Shift>(2);
  fr::intercept(layer->weight, hook);
  at::Tensor const shifted = layer->forward(inputs...);
  CHECK(hook->calls == 1);
  CHECK(at::allclose(shifted, plain + 2));  // 3-D: the bias is added after the hook
  fr::release(layer->weight, *hook);
  CHECK(at::equal(layer->forward(inputs...), plain));
  CHECK(hook->calls == 1);
}

}  // namespace

TEST_CASE("a layer is found by its weight, whatever the shape of its input") {
  torch::manual_seed(3);
  torch::nn::Linear linear(4, 3);
  shifts_by_two(linear, torch::randn({5, 4}));
  shifts_by_two(linear, torch::randn({2, 5, 4}));
  shifts_by_two(linear, torch::randn({4}));
  torch::nn::Linear bare(torch::nn::LinearOptions(4, 3).bias(false));
  shifts_by_two(bare, torch::randn({5, 4}));
  torch::nn::Conv2d conv(torch::nn::Conv2dOptions(3, 4, 3).stride(2).padding(1));
  shifts_by_two(conv, torch::randn({2, 3, 8, 8}));
  torch::nn::Conv2d same(torch::nn::Conv2dOptions(3, 4, 3).padding(torch::kSame).dilation(2));
  shifts_by_two(same, torch::randn({2, 3, 8, 8}));
  torch::nn::Embedding table(torch::nn::EmbeddingOptions(10, 4).padding_idx(1));
  shifts_by_two(table, torch::tensor({{1, 2}, {9, 1}}));
  torch::nn::LayerNorm norm(torch::nn::LayerNormOptions({4}));
  shifts_by_two(norm, torch::randn({2, 5, 4}));
}

TEST_CASE("gradients of an intercepted layer are those of what the hooks compute") {
  torch::manual_seed(3);
  torch::nn::Linear linear(4, 4);  // square: its weight and the transposed one have one shape
  at::Tensor const input = torch::randn({5, 4}, torch::requires_grad());
  at::Tensor const factor = torch::randn({5, 4});
  (linear->forward(input) * factor).sum().backward();
  at::Tensor const of_input = input.grad().clone();
  at::Tensor const of_weight = linear->weight.grad().clone();
  input.mutable_grad().reset();
  linear->zero_grad();
  auto const hook = std::make_shared<Shift>(2);
  fr::intercept(linear->weight, hook);
  (linear->forward(input) * factor).sum().backward();
  CHECK(hook->calls == 1);  // none in the backward pass
  CHECK(at::equal(input.grad(), of_input));
  CHECK(at::equal(linear->weight.grad(), of_weight));
  fr::release(linear->weight, *hook);
}

TEST_CASE("hooks are called from the outside in, and may replace what they pass on") {
  struct Doubled : fr::LayerHook {
    Place place() const override { return Place::compute; }
    at::Tensor call(fr::LayerCall const& call, fr::LayerRest const& rest) override {
      fr::LayerCall changed = call;
      changed.weight = call.weight * 2;
      return rest(changed);
    }
  };
  torch::nn::Linear linear(torch::nn::LinearOptions(4, 3).bias(false));
  at::Tensor const input = torch::randn({5, 4});
  at::Tensor const plain = linear->forward(input);
  auto const doubled = std::make_shared<Doubled>();
  auto const shift = std::make_shared<Shift>(1);
  fr::intercept(linear->weight, doubled);
  fr::intercept(linear->weight, shift);
  CHECK(at::allclose(linear->forward(input), plain * 2 + 1));
  fr::release(linear->weight, *doubled);
  CHECK(at::allclose(linear->forward(input), plain + 1));
  fr::release(linear->weight, *shift);
}

TEST_CASE("a weight stays intercepted when its data are replaced, and a copy is not") {
  torch::nn::Linear linear(4, 3);
  auto const hook = std::make_shared<Shift>(1);
  fr::intercept(linear->weight, hook);
  linear->to(torch::kDouble);
  linear->forward(torch::randn({5, 4}, torch::kDouble));
  CHECK(hook->calls == 1);
  linear->weight.set_data(torch::randn({3, 4}, torch::kDouble));
  linear->forward(torch::randn({5, 4}, torch::kDouble));
  CHECK(hook->calls == 2);
  at::linear(torch::randn({5, 4}, torch::kDouble), linear->weight.detach().clone());
  CHECK(hook->calls == 2);
  at::linear(torch::randn({5, 4}, torch::kDouble), linear->weight);
  CHECK(hook->calls == 3);
}

TEST_CASE("interception is above autocast, works without gradients, and in a thread that asks") {
  torch::nn::Linear linear(4, 3);
  auto const hook = std::make_shared<Shift>(0);
  fr::intercept(linear->weight, hook);
  {
    at::autocast::set_autocast_enabled(at::kCPU, true);
    at::Tensor const out = linear->forward(torch::randn({5, 4}));
    at::autocast::set_autocast_enabled(at::kCPU, false);
    at::autocast::clear_cache();
    CHECK((out.scalar_type() == at::kBFloat16));
    CHECK(hook->calls == 1);
  }
  {
    torch::NoGradGuard const no_gradients;
    linear->forward(torch::randn({5, 4}));
    linear->forward(torch::randn({2, 5, 4}));
    CHECK(hook->calls == 3);
  }
  {
    c10::InferenceMode const inference;
    linear->forward(torch::randn({5, 4}));
    CHECK(hook->calls == 4);
  }
  std::thread([&] { linear->forward(torch::randn({5, 4})); }).join();
  CHECK(hook->calls == 4);
  std::thread([&] {
    fr::use_interception();
    linear->forward(torch::randn({5, 4}));
  }).join();
  CHECK(hook->calls == 5);
}

TEST_CASE("a part of a weight, and other products, are not its layer") {
  torch::nn::Linear linear(4, 4);
  auto const hook = std::make_shared<Shift>(1);
  fr::intercept(linear->weight, hook);
  at::Tensor const input = torch::randn({5, 4});
  input.matmul(linear->weight.slice(0, 0, 2).t());
  input.matmul(linear->weight);
  at::addmm(linear->bias, input, linear->weight.t(), /*beta=*/0.5);
  CHECK(hook->calls == 0);
}
