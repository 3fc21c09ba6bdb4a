// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>
#include <torch/nn/init.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>

#include <frugal/model/lora.hpp>
#include <frugal/model/lora/merge.hpp>
#include <frugal/model/lora/peft.hpp>

#include <string>
#include <vector>

#include "support/files.hpp"

namespace frugal_test::model_lora_peft {

using namespace frugal_test::support;
using namespace frugal;

torch::nn::Sequential network() {
  torch::manual_seed(2);
  return torch::nn::Sequential(torch::nn::Linear(6, 8), torch::nn::ReLU(), torch::nn::Linear(8, 3));
}

TEST_CASE("an adapter that was saved and loaded gives the same outputs, under another name too") {
  TemporaryFolder const folder;
  torch::nn::Sequential net = network();
  adapt(net, Lora<Rank<2>, Alpha<4>, On<"0">, AlsoTrain<"2.*">>{});
  for (auto const& each : frugal::detail::find_adapters(*net))
    torch::nn::init::ones_(each.adapter->b());
  save_adapter(net, folder.path());
  torch::nn::Sequential other = network();
  load_adapter(other, folder.path(), "task");
  at::Tensor const input = torch::randn({4, 6});
  CHECK(at::equal(other->forward(input), net->forward(input)));
  CHECK(other->named_parameters().contains("0.lora.task.A"));
}

TEST_CASE("adapters of one name and several options are not one file") {
  TemporaryFolder const folder;
  torch::nn::Sequential net = network();
  adapt(net, Lora<Rank<2>, Alpha<4>, On<"0">>{});
  adapt(net, Lora<Rank<2>, Alpha<8>, On<"2">>{});
  CHECK_THROWS_WITH_AS(save_adapter(net, folder.path()), doctest::Contains("'0' and '2'"),
                       SettingsError);
}

TEST_CASE("an adapter that one layer refuses changes no other layer") {
  TemporaryFolder const folder;
  torch::nn::Sequential net = network();
  adapt(net, Lora<Rank<2>, On<"0", "2">>{});
  save_adapter(net, folder.path());
  torch::nn::Sequential other = network();
  adapt(other, Lora<Rank<3>, On<"2">>{});
  auto const names = other->named_parameters().keys();
  CHECK_THROWS_WITH_AS(load_adapter(other, folder.path()), doctest::Contains("other settings"),
                       SettingsError);
  CHECK(other->named_parameters().keys() == names);
}

}  // namespace frugal_test::model_lora_peft
