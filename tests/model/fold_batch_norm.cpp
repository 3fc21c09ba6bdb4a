// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/pooling.h>

#include <frugal/error.hpp>
#include <frugal/model/fold_batch_norm.hpp>
#include <frugal/model/quantize.hpp>

#include <memory>

#include "support/reference.hpp"

namespace frugal_test::model_fold_batch_norm {

using namespace frugal_test::support;
using torch::nn::BatchNorm1d;
using torch::nn::BatchNorm2d;
using torch::nn::Conv2d;
using torch::nn::Conv2dOptions;
using torch::nn::Linear;
using torch::nn::Sequential;

/// A network whose statistics and affine parameters are those of no beginner.
Sequential network() {
  torch::manual_seed(30);
  Sequential net(Conv2d(Conv2dOptions(3, 8, 3).bias(false)), BatchNorm2d(8), torch::nn::ReLU(),
                 Conv2d(Conv2dOptions(8, 8, 3).groups(2)),
                 BatchNorm2d(torch::nn::BatchNormOptions(8).affine(false)), torch::nn::Flatten(),
                 Linear(128, 16), BatchNorm1d(16));
  at::NoGradGuard const no_gradients;
  for (auto& item : net->named_parameters()) {
    if (item.value().dim() == 1) item.value().normal_();
  }
  for (auto& item : net->named_buffers()) {
    if (item.value().dim() == 1) item.value().uniform_(0.3, 2);
  }
  net->eval();
  return net;
}

at::Tensor input() { return torch::randn({4, 3, 8, 8}); }

TEST_CASE("a folded module computes what it computed, without BatchNorm") {
  Sequential net = network();
  at::NoGradGuard const no_gradients;
  at::Tensor const images = input();
  at::Tensor const before = net->forward(images).clone();
  CHECK(frugal::fold_batch_norm(net) == 3);
  CHECK(distance(net->forward(images), before) <= 1e-5 * before.abs().max().item<double>());
  CHECK(net->named_parameters().contains("0.bias"));
  CHECK_FALSE(net->named_parameters().contains("1.weight"));
  CHECK(frugal::fold_batch_norm(net) == 0);
}

TEST_CASE("a quantized layer takes the factor into its scales, and no integer changes") {
  Sequential net = network();
  at::NoGradGuard const no_gradients;
  frugal::quantize<frugal::INT8>(net);
  at::Tensor const images = input();
  at::Tensor const before = net->forward(images).clone();
  at::Tensor const integers = net->named_buffers()["0.quantized.values"].clone();
  CHECK(frugal::fold_batch_norm(net) == 3);
  CHECK(at::equal(net->named_buffers()["0.quantized.values"], integers));
  CHECK(distance(net->forward(images), before) <= 2e-2 * before.abs().max().item<double>());
}

TEST_CASE("what cannot be folded stays: a weight that two layers have, and statistics of no one") {
  Sequential net(Linear(16, 16), BatchNorm1d(16), Linear(16, 16),
                 BatchNorm1d(torch::nn::BatchNormOptions(16).track_running_stats(false)));
  auto& first = *net[0]->as<Linear>();
  auto& second = *net[2]->as<Linear>();
  second.weight = first.weight;
  // Registered under the name by which it is found.
  frugal::detail::own_parameters(second)["weight"] = first.weight;
  CHECK(frugal::fold_batch_norm(net) == 0);
  // An adapter adds to the outputs, and would not be folded.
  Sequential adapted = network();
  adapted[0]->register_module("lora", std::make_shared<torch::nn::Module>("Lora"));
  CHECK(frugal::fold_batch_norm(adapted) == 2);
}

TEST_CASE("a weight stays if another layer was given it, or has its numbers") {
  Sequential net(Linear(16, 16), BatchNorm1d(16), Linear(16, 16), torch::nn::ReLU());
  net[2]->as<Linear>()->weight = net[0]->as<Linear>()->weight;
  CHECK(frugal::fold_batch_norm(net) == 0);
  Sequential other(Linear(16, 16), BatchNorm1d(16), Linear(16, 16), torch::nn::ReLU());
  other[2]->as<Linear>()->weight.set_data(other[0]->as<Linear>()->weight.detach());
  CHECK(frugal::fold_batch_norm(other) == 0);
}

/// A layer of a program, which computes something else than Linear.
struct WithReluImpl : torch::nn::LinearImpl {
  using LinearImpl::LinearImpl;
  at::Tensor forward(at::Tensor const& x) { return LinearImpl::forward(x).relu(); }
};
TORCH_MODULE(WithRelu);

TEST_CASE("a class that derives from a layer stays as it is") {
  torch::manual_seed(32);
  at::NoGradGuard const no_gradients;
  Sequential net(WithRelu(5, 6), BatchNorm1d(6));
  net[1]->as<BatchNorm1d>()->running_mean.normal_();
  net->eval();
  at::Tensor const rows = torch::randn({4, 5});
  at::Tensor const before = net->forward(rows).clone();
  CHECK(frugal::fold_batch_norm(net) == 0);
  CHECK(at::equal(net->forward(rows), before));
}

/// With a forward of its own, in which BatchNorm comes first.
struct BackwardsImpl : torch::nn::SequentialImpl {
  using SequentialImpl::SequentialImpl;
  at::Tensor forward(at::Tensor const& x) {
    return ptr(0)->as<torch::nn::Linear>()->forward(
        ptr(1)->as<torch::nn::BatchNorm1d>()->forward(x));
  }
};

TEST_CASE("a class that derives from Sequential stays as it is") {
  torch::manual_seed(33);
  at::NoGradGuard const no_gradients;
  auto const net = std::make_shared<BackwardsImpl>(torch::nn::Linear(5, 5), BatchNorm1d(5));
  (*net)[1]->as<BatchNorm1d>()->running_mean.normal_();
  net->eval();
  at::Tensor const rows = torch::randn({4, 5});
  at::Tensor const before = net->forward(rows).clone();
  CHECK(frugal::fold_batch_norm(net) == 0);
  CHECK(at::equal(net->forward(rows), before));
}

TEST_CASE("layers of 16 bits are folded as exactly as they are, and not beyond their numbers") {
  torch::manual_seed(33);
  at::NoGradGuard const no_gradients;
  Sequential net(Linear(5, 6), BatchNorm1d(6));
  // Of outputs as small as these the variance has two digits of FP16.
  net[0]->as<Linear>()->weight.mul_(0.001);
  net[0]->as<Linear>()->bias.zero_();
  net[1]->as<BatchNorm1d>()->running_var.fill_(1.3e-6);
  net->eval();
  net->to(at::kHalf);
  at::Tensor const rows = torch::randn({64, 5}).to(at::kHalf);
  at::Tensor const before = net->forward(rows).to(at::kFloat);
  CHECK(frugal::fold_batch_norm(net) == 1);
  CHECK(distance(net->forward(rows).to(at::kFloat), before) <=
        2e-3 * before.abs().max().item<double>());
  CHECK((net[0]->as<Linear>()->bias.scalar_type() == at::kHalf));
  Sequential large(Linear(torch::nn::LinearOptions(5, 6).bias(false)), BatchNorm1d(6));
  large[0]->as<Linear>()->weight.fill_(1000);
  large[1]->as<BatchNorm1d>()->running_var.fill_(1e-5);
  large->to(at::kHalf);
  CHECK(frugal::fold_batch_norm(large) == 0);
  CHECK_FALSE(large->named_parameters().contains("0.bias"));
  CHECK(large[0]->as<Linear>()->weight[0][0].item<double>() == 1000);
}

TEST_CASE(
    "a folded Linear refuses positions, which its BatchNorm normalized instead of its outputs") {
  torch::manual_seed(31);
  at::NoGradGuard const no_gradients;
  Sequential net(Linear(5, 6), BatchNorm1d(6));
  net[1]->as<BatchNorm1d>()->running_mean.normal_();
  net->eval();
  at::Tensor const rows = torch::randn({4, 5}), positions = torch::randn({4, 6, 5});
  at::Tensor const before = net->forward(rows).clone();
  // Dimension 1 of [B, T, C] is T: as many as C, so that the sizes do not show it.
  CHECK((net->forward(positions).sizes() == at::IntArrayRef{4, 6, 6}));
  CHECK(frugal::fold_batch_norm(net) == 1);
  CHECK(distance(net->forward(rows), before) <= 1e-6 * before.abs().max().item<double>());
  CHECK_THROWS_WITH_AS(net->forward(positions), doctest::Contains("[4, 6, 6]"), frugal::ShapeError);
  CHECK(net[1]->as<torch::nn::Identity>() != nullptr);
}

}  // namespace frugal_test::model_fold_batch_norm
