// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <frugal/core/libtorch/module_hold.hpp>

#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/dropout.h>
#include <torch/nn/modules/instancenorm.h>
#include <torch/nn/modules/linear.h>

#include <stdexcept>

namespace frugal_test::libtorch_module_hold {

using frugal::detail::Adaptation;
using frugal::detail::ModuleHold;

struct Net {
  torch::nn::Linear linear{4, 4};
  torch::nn::BatchNorm1d norm{4};
  torch::nn::BatchNorm1d bare{torch::nn::BatchNorm1dOptions(4).affine(false)};
  torch::nn::InstanceNorm1d instance{
      torch::nn::InstanceNorm1dOptions(4).affine(true).track_running_stats(true)};
  torch::nn::Dropout dropout{0.5};
  torch::nn::Sequential all{linear, norm, bare, instance, dropout};

  void fix(torch::nn::Module& layer) const {
    for (at::Tensor const& each : layer.parameters()) frugal::fix_tensor(each);
  }
};

TEST_CASE(
    "a layer whose parameters are all fixed evaluates, whatever calls train(), and others train") {
  Net net;
  net.fix(*net.norm);
  net.fix(*net.instance);
  net.fix(*net.linear);
  net.fix(*net.dropout);
  frugal::fix_tensor(net.bare->running_mean);
  {
    ModuleHold hold(*net.all);
    hold.train();
    CHECK_FALSE(net.norm->is_training());
    CHECK_FALSE(net.instance->is_training());
    CHECK(net.bare->is_training());  // its variance is not fixed
    CHECK(net.linear->is_training());
    CHECK(net.dropout->is_training());
    net.all->train();
    hold.before_pass();
    CHECK_FALSE(net.norm->is_training());
    CHECK_FALSE(net.instance->is_training());
  }
  CHECK(net.norm->is_training());
  CHECK(net.instance->is_training());
  frugal::fix_tensor(net.bare->running_var);
  frugal::fix_tensor(net.bare->num_batches_tracked);
  frugal::unfix_tensor(net.norm->bias);
  ModuleHold hold(*net.all);
  hold.train();
  CHECK(net.norm->is_training());
  CHECK_FALSE(net.bare->is_training());
}

TEST_CASE("what a hold has changed is put back after an error too, and what others change stays") {
  Net net;
  net.all->eval();
  net.norm->bias.set_requires_grad(false);
  try {
    ModuleHold hold(*net.all);
    hold.train();
    CHECK(net.dropout->is_training());
    hold.hold({net.norm->weight, net.norm->bias, net.linear->weight});
    CHECK_FALSE(net.norm->weight.requires_grad());
    CHECK_FALSE(net.norm->is_training());
    net.linear->bias.set_requires_grad(false);
    throw std::runtime_error("in a step");
  } catch (std::runtime_error const&) {
    CHECK(net.norm->weight.requires_grad());
    CHECK(net.linear->weight.requires_grad());
  }
  CHECK_FALSE(net.norm->bias.requires_grad());
  CHECK_FALSE(net.linear->bias.requires_grad());
  for (auto const& part : net.all->modules()) CHECK_FALSE(part->is_training());
}

TEST_CASE("a layer that is let go trains again, unless the user has put it into evaluation mode") {
  Net net;
  torch::nn::BatchNorm1d other(4);
  net.all->push_back(other);
  other->eval();
  std::vector<at::Tensor> const held{net.norm->weight, net.norm->bias, other->weight, other->bias};
  ModuleHold hold(*net.all);
  hold.hold(held);
  CHECK(net.norm->is_training());  // the run has not begun
  hold.train();
  CHECK_FALSE(net.norm->is_training());
  hold.let_go(held);
  CHECK(net.norm->weight.requires_grad());
  CHECK(net.norm->is_training());
  CHECK_FALSE(other->is_training());
  // As after a rollback, which restores modes.
  net.norm->eval();
  hold.hold(held);
  hold.let_go(held);
  CHECK(net.norm->is_training());
}

TEST_CASE("an adaptation that fails leaves no tensor fixed, released or trained") {
  Net net;
  frugal::fix_tensor(net.linear->bias);
  net.norm->bias.set_requires_grad(false);
  net.norm->weight.mutable_grad() = at::ones({4});
  auto const adapt = [&](bool succeeds) {
    Adaptation all(*net.all);
    frugal::fix_tensor(net.norm->weight);
    all.train(net.linear->bias);
    all.train(net.norm->bias);
    CHECK(all.trains(net.norm->bias));
    CHECK_FALSE(all.trains(net.norm->weight));
    if (succeeds) all.keep();
  };
  adapt(false);
  CHECK_FALSE(frugal::is_fixed(net.norm->weight));
  CHECK(net.norm->weight.requires_grad());
  CHECK(net.norm->weight.grad().defined());
  CHECK(frugal::is_fixed(net.linear->bias));
  CHECK_FALSE(net.linear->bias.requires_grad());
  CHECK_FALSE(net.norm->bias.requires_grad());
  adapt(true);
  CHECK(frugal::is_fixed(net.norm->weight));
  CHECK_FALSE(frugal::is_fixed(net.linear->bias));
  CHECK(net.linear->bias.requires_grad());
  CHECK(net.norm->bias.requires_grad());
}

}  // namespace frugal_test::libtorch_module_hold
