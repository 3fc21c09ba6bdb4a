// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <torch/csrc/autograd/variable.h>
#include <torch/nn/modules/container/any.h>
#include <torch/nn/modules/container/sequential.h>
#include <frugal/core/libtorch/parameters.hpp>

#include "core/loop/stand_ins.hpp"

#include <memory>

namespace frugal_test::libtorch_parameters {

using namespace frugal_test::loop;
using Names = std::vector<std::string>;

TEST_CASE(
    "the module is found behind a value, a holder, a pointer, an AnyModule and a Sequential") {
  Net net;
  CHECK(&base_module(net) == &net);
  torch::nn::Linear holder(2, 3);
  CHECK(&base_module(holder) == holder.get());
  auto shared = std::make_shared<Net>();
  CHECK(&base_module(shared) == shared.get());
  Net* pointer = &net;
  CHECK(&base_module(pointer) == &net);
  torch::nn::AnyModule any(holder);
  CHECK(&base_module(any) == holder.get());
  torch::nn::Sequential sequential(holder);
  CHECK(&base_module(sequential) == sequential.get());
}

TEST_CASE("an empty holder or pointer is an error and no crash") {
  torch::nn::Linear holder(nullptr);
  std::shared_ptr<Net> pointer;
  torch::nn::AnyModule any;
  CHECK_THROWS_AS(base_module(holder), ModuleError);
  CHECK_THROWS_AS(base_module(any), ModuleError);
  CHECK_THROWS_WITH_AS(base_module(pointer),
                       "frugal: there is no module (fit): the holder or pointer is empty. Give "
                       "the trainer one that holds a module.",
                       ModuleError);
}

TEST_CASE("forward reaches through all of them") {
  at::Tensor const data = at::ones({2, 4}, at::kDouble);
  Net net;
  at::Tensor const expected = net.forward(data);
  auto shared = std::make_shared<Net>();
  CHECK(frugal::forward(net, data).equal(expected));
  CHECK(frugal::forward(shared, data).equal(expected));
  torch::nn::Linear holder(4, 1);
  holder->to(at::kDouble);
  torch::nn::AnyModule any(holder);
  torch::nn::Sequential sequential(holder);
  CHECK(frugal::forward(holder, data).equal(holder->forward(data)));
  CHECK(frugal::forward(any, data).equal(holder->forward(data)));
  CHECK(frugal::forward(sequential, data).equal(holder->forward(data)));
}

TEST_CASE("parameters come with their names in the module's order") {
  Net net;
  Parameters const parameters = Parameters::of(net);
  CHECK(parameters.names == Names{"first.weight", "first.bias", "second.weight", "second.bias"});
  CHECK(parameters.tensors[2].is_same(net.second->weight));
}

struct Tied : torch::nn::Module {
  Tied() {
    one = register_module("one", torch::nn::Linear(3, 3));
    two = register_module("two", torch::nn::Linear(3, 3));
    two->weight = two->register_parameter("tied", one->weight);
  }
  torch::nn::Linear one{nullptr}, two{nullptr};
};

TEST_CASE("tied weights are one parameter under their first name") {
  Tied const tied;
  Parameters const parameters = Parameters::of(tied);
  CHECK(parameters.names == Names{"one.weight", "one.bias", "two.weight", "two.bias"});
  // A pattern of either name selects it.
  auto const selected = [&](std::string const& name) {
    Names found;
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      if (parameters.any_name(i, [&](std::string const& each) { return each == name; })) {
        found.push_back(parameters.names[i]);
      }
    }
    return found;
  };
  CHECK(selected("two.tied") == Names{"one.weight"});
  CHECK(selected("one.weight") == Names{"one.weight"});
  CHECK(selected("two.bias") == Names{"two.bias"});
  CHECK(selected("tied").empty());
}

TEST_CASE("gradients are listed in parameter order, without missing ones") {
  Net net;
  Parameters const parameters = Parameters::of(net);
  GradientList list;
  list.collect(parameters);
  CHECK(list.tensors().empty());
  CHECK_FALSE(list.complete());
  net.second->bias.mutable_grad() = at::ones({3}, at::kDouble);
  net.first->bias.mutable_grad() = at::zeros({8}, at::kDouble);
  list.collect(parameters);
  REQUIRE(list.tensors().size() == 2);
  CHECK(list.tensors()[0].size(0) == 8);
  CHECK(list.tensors()[1].size(0) == 3);
  CHECK_FALSE(list.complete());
  net.forward(at::ones({1, 4}, at::kDouble)).sum().backward();
  list.collect(parameters);
  CHECK(list.complete());
}

TEST_CASE("reset gradients are undefined, not zero") {
  Net net;
  net.forward(at::ones({1, 4}, at::kDouble)).sum().backward();
  Parameters::of(net).reset_gradients();
  for (at::Tensor const& tensor : net.parameters()) CHECK_FALSE(tensor.grad().defined());
}

}  // namespace frugal_test::libtorch_parameters
