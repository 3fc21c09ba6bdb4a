// SPDX-License-Identifier: Apache-2.0
#include <frugal/core/libtorch/fixed_tensors.hpp>

#include <doctest/doctest.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>

#include <frugal/core/libtorch/parameters.hpp>
#include <frugal/core/run/run_state.hpp>
#include <frugal/core/state/module_tensors.hpp>

#include <string>
#include <vector>

namespace fr = frugal;

namespace {

torch::nn::Sequential network() {
  torch::manual_seed(4);
  return torch::nn::Sequential(torch::nn::Linear(4, 4), torch::nn::BatchNorm1d(4));
}

std::vector<std::string> visited(torch::nn::Sequential net) {
  std::vector<std::string> names;
  fr::detail::visit_tensors(
      *net, [&](std::string const& name, at::Tensor const&) { names.push_back(name); });
  return names;
}

}  // namespace

TEST_CASE("a fixed parameter has no gradient, and is neither trained nor saved") {
  auto net = network();
  at::Tensor const weight = net->named_parameters()["0.weight"];
  CHECK(fr::fixed_identity(*net).empty());
  net->forward(at::ones({2, 4})).sum().backward();
  fr::fix_tensor(weight);
  CHECK(fr::is_fixed(weight));
  CHECK(!weight.requires_grad());
  CHECK(!weight.grad().defined());
  CHECK(fr::Parameters::of(*net).names == std::vector<std::string>{"0.bias", "1.weight", "1.bias"});
  CHECK(visited(net) == std::vector<std::string>{"0.bias", "1.weight", "1.bias", "1.running_mean",
                                                 "1.running_var", "1.num_batches_tracked"});
  fr::fix_tensor(net->named_buffers()["1.running_mean"]);
  CHECK(visited(net).size() == 5);
  fr::unfix_tensor(weight);
  CHECK(!fr::is_fixed(weight));
  CHECK(!weight.requires_grad());
  CHECK(fr::Parameters::of(*net).size() == 4);
  fr::fix_tensor(weight);
  CHECK(fr::is_fixed(weight));
}

TEST_CASE("a tensor stays fixed when its data are replaced, and a copy is not") {
  auto net = network();
  at::Tensor const weight = net->named_parameters()["0.weight"];
  fr::fix_tensor(weight);
  net->to(at::kDouble);
  CHECK(fr::is_fixed(net->named_parameters()["0.weight"]));
  CHECK(!fr::is_fixed(weight.clone()));
  CHECK(!fr::is_fixed(weight.detach()));
}

TEST_CASE("a tensor with the address of a fixed one that is gone is not fixed") {
  for (int i = 0; i < 200; ++i) {
    at::Tensor const one = at::zeros({2});
    CHECK(!fr::is_fixed(one));
    fr::fix_tensor(one);
  }
}

TEST_CASE("the identity follows names, shapes and values of what is fixed") {
  auto const of = [](auto&& change) {
    auto net = network();
    fr::fix_tensor(net->named_parameters()["0.weight"]);
    at::NoGradGuard const no_gradients;
    change(net);
    return fr::fixed_identity(*net);
  };
  std::string const plain = of([](auto const&) {});
  CHECK(plain.size() == 16);
  CHECK(of([](auto const&) {}) == plain);
  CHECK(of([](auto const& net) { net->named_parameters()["0.weight"][3][3] += 1e-3; }) != plain);
  CHECK(of([](auto const& net) { net->named_parameters()["0.bias"][3] += 1e-3; }) == plain);
  CHECK(of([](auto const& net) { fr::fix_tensor(net->named_parameters()["0.bias"]); }) != plain);
}

TEST_CASE("a run notices a write to a fixed tensor, and fixed tensors that are not its own") {
  auto net = network();
  at::Tensor const weight = net->named_parameters()["0.weight"];
  fr::fix_tensor(weight);
  fr::FixedIdentity fixed;
  std::string const identity = fixed.identify(*net);
  CHECK(fixed.identify(*net) == identity);
  fixed.require(*net, identity);
  CHECK_THROWS_WITH_AS(fixed.require(*net, ""), doctest::Contains("had none"), fr::StateError);
  CHECK_THROWS_WITH_AS(fixed.require(*net, "0123456789abcdef"),
                       doctest::Contains("0123456789abcdef there"), fr::StateError);
  at::NoGradGuard const no_gradients;
  weight.mul_(2);
  CHECK_THROWS_WITH_AS(fixed.identify(*net), doctest::Contains("was written to"), fr::StateError);
}
