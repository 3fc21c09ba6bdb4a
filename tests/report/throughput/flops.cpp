// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>

#include <frugal/report/throughput/flops.hpp>

#include <future>

#include "support/running.hpp"

namespace frugal_test::watch_flops {

using namespace frugal_test::support;
using frugal::FlopCounter;

template <class Body>
std::uint64_t counted(Body&& body) {
  FlopCounter counter;
  REQUIRE(counter.open());
  counter.count();
  body();
  return counter.close();
}

at::Tensor variable(Json const& shape) {
  return table(shape_in(shape), 40, 0).requires_grad_(true);
}

/// Checks forward, and the backward pass of the sum, against the file.
template <class Forward>
void check(Json const& which, Forward&& forward) {
  CAPTURE(which.dump());
  at::Tensor output;
  CHECK(counted([&] { output = forward(); }) == which.at("forward").get<std::uint64_t>());
  if (!which.contains("backward")) return;
  CHECK(counted([&] { output.sum().backward(); }) == which.at("backward").get<std::uint64_t>());
}

TEST_CASE("products have the operations that PyTorch counts, forward and backward") {
  Json const file = reference("flops.json");
  for (Json const& which : file.at("products")) {
    at::Tensor const a = variable(which.at("a"));
    at::Tensor const b = variable(which.at("b"));
    check(which, [&]() -> at::Tensor {
      std::string const name = which.at("operator");
      if (name == "mm") return at::mm(a, b);
      if (name == "addmm") return at::addmm(at::zeros({7}), a, b);
      if (name == "bmm") return at::bmm(a, b);
      if (name == "baddbmm") return at::baddbmm(at::zeros({7}), a, b);
      if (name == "linear") return at::linear(a, b, at::zeros({7}));
      return at::matmul(a, b);
    });
  }
}

TEST_CASE("products of few bits count as those of FP32") {
  at::Tensor const a = at::ones({16, 32}, at::kChar);
  at::Tensor sums = at::empty({16, 48}, at::kInt);
  CHECK(counted([&] { at::_int_mm(a, at::ones({32, 48}, at::kChar)); }) == 2 * 16 * 32 * 48);
  CHECK(counted([&] { at::_int_mm_out(sums, a, at::ones({32, 48}, at::kChar)); }) ==
        2 * 16 * 32 * 48);
}

TEST_CASE("a product of [M, K] and [K, N] is 2 M K N operations, and its gradients as many each") {
  at::Tensor const a = at::ones({4, 5}).requires_grad_();
  at::Tensor const b = at::ones({5, 7}).requires_grad_();
  at::Tensor product;
  CHECK(counted([&] { product = at::addmm(at::ones({7}), a, b); }) == 2 * 4 * 5 * 7);
  CHECK(counted([&] { product.sum().backward(); }) == 2 * (2 * 4 * 5 * 7));
}

TEST_CASE("convolutions have the operations that PyTorch counts, forward and backward") {
  Json const file = reference("flops.json");
  for (Json const& which : file.at("convolutions")) {
    at::Tensor const x = variable(which.at("input"));
    at::Tensor const w = variable(which.at("weight"));
    std::vector<std::int64_t> const none(shape_in(which.at("stride")).size(), 0);
    check(which, [&] {
      return at::convolution(x, w, {}, shape_in(which.at("stride")), shape_in(which.at("padding")),
                             shape_in(which.at("dilation")), which.at("transposed"), none,
                             which.at("groups"));
    });
  }
}

TEST_CASE("each gradient of a grouped convolution has as many operations as its forward pass") {
  at::Tensor const x = at::ones({2, 4, 8, 8}).requires_grad_();
  at::Tensor const w = at::ones({6, 2, 3, 3}).requires_grad_();
  std::vector<std::int64_t> const ones{1, 1};
  std::vector<std::int64_t> const none{0, 0};
  at::Tensor y;
  // 6 x 6 positions of 2 samples; 6 outputs of 2 inputs by 3 x 3 weights.
  std::uint64_t const forward = 2ULL * (2 * 6 * 6) * (6 * 2 * 3 * 3);
  CHECK(counted([&] { y = at::conv2d(x, w, {}, ones, none, ones, /*groups=*/2); }) == forward);
  CHECK(counted([&] { y.sum().backward(); }) == 2 * forward);
  at::Tensor const constant = x.detach();
  y = at::conv2d(constant, w, {}, ones, none, ones, 2);
  CHECK(counted([&] { y.sum().backward(); }) == forward);
}

TEST_CASE("attention has the operations that PyTorch counts, forward and backward") {
  Json const file = reference("flops.json");
  for (Json const& which : file.at("attention")) {
    auto const shapes = {shape_in(which.at("query")), shape_in(which.at("key")),
                         shape_in(which.at("value"))};
    auto const* const of = shapes.begin();
    CHECK(frugal::detail::attention_flops(of[0], of[1], of[2], 1, 1) ==
          which.at("forward").get<std::uint64_t>());
    CHECK(frugal::detail::attention_flops(of[0], of[1], of[2], 3, 2) ==
          which.at("backward").get<std::uint64_t>());
  }
  Json const& which = file.at("attention")[0];
  at::Tensor const q = variable(which.at("query"));
  at::Tensor const k = variable(which.at("key"));
  at::Tensor const v = variable(which.at("value"));
  check(which, [&] { return at::scaled_dot_product_attention(q, k, v); });
}

TEST_CASE("a step of a network has the operations that PyTorch counts") {
  torch::nn::Sequential net(torch::nn::Conv2d(1, 4, 3), torch::nn::ReLU(), torch::nn::Flatten(),
                            torch::nn::Linear(64, 3));
  at::Tensor const data = table({5, 1, 6, 6}, 41, 0);
  at::Tensor const target = at::tensor({0, 1, 2, 0, 1}, at::kLong);
  CHECK(counted([&] { at::cross_entropy_loss(net->forward(data), target).backward(); }) ==
        reference("flops.json").at("training").at("step").get<std::uint64_t>());
}

TEST_CASE("work during a pause, and in other threads, is not counted") {
  at::Tensor const a = at::ones({2, 2});
  FlopCounter counter;
  REQUIRE(counter.open());
  at::mm(a, a);
  counter.count();
  counter.count();
  at::mm(a, a);
  std::async(std::launch::async, [&] { at::mm(a, a); }).get();
  counter.pause();
  at::mm(a, a);
  counter.count();
  at::mm(a, a);
  CHECK(counter.close() == 2 * 16);
  at::mm(a, a);
  CHECK(counter.close() == 2 * 16);
  CHECK_FALSE(at::hasThreadLocalCallbacks());
}

TEST_CASE("one counter is active at a time, and the next begins at 0") {
  FlopCounter second;
  {
    FlopCounter first;
    REQUIRE(first.open());
    CHECK(first.open());
    CHECK_FALSE(second.open());
    CHECK(second.close() == 0);
    CHECK_FALSE(second.open());
  }
  REQUIRE(second.open());
  second.count();
  at::mm(at::ones({1, 1}), at::ones({1, 1}));
  CHECK(second.close() == 2);
  REQUIRE(second.open());
  CHECK(second.close() == 0);
}

}  // namespace frugal_test::watch_flops
