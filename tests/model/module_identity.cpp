// SPDX-License-Identifier: Apache-2.0
#include <frugal/model/module_identity.hpp>

#include <doctest/doctest.h>

#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>

#include <frugal/model/lora.hpp>
#include <frugal/model/lora/merge.hpp>

#include <memory>
#include <string>

namespace frugal_test::model_module_identity {

using namespace frugal;

torch::nn::Sequential net() {
  torch::manual_seed(1);
  return torch::nn::Sequential(torch::nn::Linear(3, 4), torch::nn::BatchNorm1d(4));
}

TEST_CASE("the identity of a module is that of its names, types, shapes and values") {
  std::string const before = module_identity(*net());
  CHECK(before.starts_with("7 tensors, hash "));
  CHECK(module_identity(*net()) == before);

  auto changed = net();
  {
    at::NoGradGuard const no_gradients;
    changed->parameters()[1][2] += 1e-7;
  }
  CHECK(module_identity(*changed) != before);

  auto trained = net();
  trained->forward(torch::ones({2, 3}));  // the statistics move
  CHECK(module_identity(*trained) != before);

  auto half = net();
  half->to(at::kBFloat16);
  CHECK(module_identity(*half) != before);

  // The same tensors under other names.
  torch::nn::Sequential renamed;
  auto const layers = net()->children();
  renamed->push_back("first", std::dynamic_pointer_cast<torch::nn::LinearImpl>(layers[0]));
  renamed->push_back("1", std::dynamic_pointer_cast<torch::nn::BatchNorm1dImpl>(layers[1]));
  CHECK(module_identity(*renamed) != before);
}

TEST_CASE("modes and gradients are no part of the identity") {
  auto module = net();
  std::string const before = module_identity(*module);
  module->eval();
  module->forward(torch::ones({2, 3})).sum().backward();
  CHECK(module_identity(*module) == before);
}

TEST_CASE(
    "the identity of a module with adapters has their scale, and which are in use or merged") {
  auto const adapted = [](auto policy) {
    auto module = net();
    adapt(module, policy);
    return module;
  };
  // The adapters begin with B = 0: the weights stay the same when they are merged.
  auto module = adapted(Lora<Rank<2>, Alpha<2>, On<"0">>{});
  std::string const before = module_identity(*module);
  CHECK(module_identity(*adapted(Lora<Rank<2>, Alpha<2>, On<"0">>{})) == before);
  CHECK(module_identity(*adapted(Lora<Rank<2>, Alpha<4>, On<"0">>{})) != before);
  use_adapter(module, "");
  std::string const without = module_identity(*module);
  CHECK(without != before);
  use_adapter(module, "default");
  CHECK(module_identity(*module) == before);
  merge(module);
  CHECK(module_identity(*module) != before);
  CHECK(module_identity(*module) != without);
  unmerge(module);
  CHECK(module_identity(*module) == before);
}

}  // namespace frugal_test::model_module_identity
