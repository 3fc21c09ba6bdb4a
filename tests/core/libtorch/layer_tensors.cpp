// SPDX-License-Identifier: Apache-2.0
#include <frugal/core/libtorch/layer_tensors.hpp>

#include <doctest/doctest.h>
#include <torch/nn/modules/container/sequential.h>

#include <cmath>
#include <cstddef>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include <frugal/core/libtorch/finite.hpp>
#include <frugal/core/libtorch/parameters.hpp>
#include <frugal/error.hpp>

namespace frugal_test::layer_tensors {

using frugal::detail::beyond_range;
using frugal::detail::bytes_of_tensors;
using frugal::detail::layer_members;
using frugal::detail::own_parameters;
using frugal::detail::register_members;
using frugal::detail::TensorPlaceCounts;
using torch::nn::Embedding;
using torch::nn::Linear;

/// As users of LibTorch tie two layers.
struct Tied : torch::nn::Module {
  Embedding words{register_module("words", Embedding(6, 4))};
  Linear head{register_module("head", Linear(4, 6))};
  Tied() { head->weight = words->weight; }
};

TEST_CASE("what a layer computes with is what it has registered, after a member was assigned") {
  Tied net;
  at::Tensor const unused = net.named_parameters()["head.weight"];
  CHECK_FALSE(unused.is_same(net.head->weight));
  register_members(net);
  CHECK(net.named_parameters()["head.weight"].is_same(net.words->weight));
  CHECK(net.named_parameters().keys() ==
        std::vector<std::string>{"words.weight", "head.weight", "head.bias"});
  CHECK(frugal::Parameters::of(net).names == std::vector<std::string>{"words.weight", "head.bias"});
  CHECK(bytes_of_tensors(net) == (6 * 4 + 6) * 4);
}

TEST_CASE("every layer of LibTorch registers its members under the names that are known here") {
  using namespace torch::nn;
  BatchNormOptions const norm(4);
  InstanceNormOptions const instance =
      InstanceNormOptions(4).affine(true).track_running_stats(true);
  std::vector<std::shared_ptr<Module>> const layers{
      std::make_shared<LinearImpl>(4, 4),
      std::make_shared<BilinearImpl>(4, 4, 4),
      std::make_shared<Conv1dImpl>(4, 4, 1),
      std::make_shared<Conv2dImpl>(4, 4, 1),
      std::make_shared<Conv3dImpl>(4, 4, 1),
      std::make_shared<ConvTranspose1dImpl>(4, 4, 1),
      std::make_shared<ConvTranspose2dImpl>(4, 4, 1),
      std::make_shared<ConvTranspose3dImpl>(4, 4, 1),
      std::make_shared<EmbeddingImpl>(4, 4),
      std::make_shared<EmbeddingBagImpl>(4, 4),
      std::make_shared<BatchNorm1dImpl>(norm),
      std::make_shared<BatchNorm2dImpl>(norm),
      std::make_shared<BatchNorm3dImpl>(norm),
      std::make_shared<InstanceNorm1dImpl>(instance),
      std::make_shared<InstanceNorm2dImpl>(instance),
      std::make_shared<InstanceNorm3dImpl>(instance),
      std::make_shared<LayerNormImpl>(LayerNormOptions({4})),
      std::make_shared<GroupNormImpl>(2, 4),
      std::make_shared<PReLUImpl>(),
      std::make_shared<MultiheadAttentionImpl>(
          MultiheadAttentionOptions(4, 2).add_bias_kv(true).kdim(3)),
      std::make_shared<MultiheadAttentionImpl>(MultiheadAttentionOptions(4, 2)),
      std::make_shared<RNNCellImpl>(4, 4),
      std::make_shared<LSTMCellImpl>(4, 4),
      std::make_shared<GRUCellImpl>(4, 4)};
  for (auto const& layer : layers) {
    CAPTURE(layer->name());
    std::size_t found = 0;
    auto const buffers = layer->named_buffers(false);
    for (auto const& [name, member] : layer_members(*layer)) {
      at::Tensor const* registered = own_parameters(*layer).find(name);
      if (registered == nullptr) registered = buffers.find(name);
      if (!member->defined()) continue;
      CAPTURE(name);
      REQUIRE(registered != nullptr);
      CHECK(registered->is_same(*member));
      ++found;
    }
    // All that a layer itself has: none is missing in the list.
    CHECK(found == layer->parameters(false).size() + layer->buffers(false).size());
  }
}

TEST_CASE("a tensor that only a forward pass has made is not registered") {
  torch::nn::Sequential net(Linear(4, 4));
  auto& layer = *net[0]->as<Linear>();
  at::Tensor const own = layer.weight;
  layer.weight = own * 2;
  register_members(*net);
  CHECK(net->named_parameters()["0.weight"].is_same(own));
  // Statistics and a bias that were assigned are the layer's.
  torch::nn::Sequential other(torch::nn::BatchNorm1d(4), Linear(4, 4));
  other[0]->as<torch::nn::BatchNorm1d>()->running_mean = at::ones({4});
  other[1]->as<Linear>()->bias = at::Tensor();
  register_members(*other);
  CHECK(at::equal(other->named_buffers()["0.running_mean"], at::ones({4})));
  CHECK(other->named_buffers()["0.running_mean"].is_same(
      other[0]->as<torch::nn::BatchNorm1d>()->running_mean));
  CHECK_FALSE(other->named_parameters().contains("1.bias"));
}

TEST_CASE("a weight that no optimizer can train in place of the registered one is an error") {
  torch::nn::Sequential net(Linear(4, 4), Linear(4, 4));
  net[1]->as<Linear>()->weight = at::ones({4, 4});
  CHECK_THROWS_WITH_AS(register_members(*net), doctest::Contains("'1.weight'"),
                       frugal::ModuleError);
  CHECK_FALSE(at::equal(net->named_parameters()["1.weight"], at::ones({4, 4})));
  // One that trains is a parameter.
  net[1]->as<Linear>()->weight = at::ones({4, 4}).requires_grad_();
  register_members(*net);
  CHECK(at::equal(net->named_parameters()["1.weight"], at::ones({4, 4})));
}

TEST_CASE("a module's device is that of its tensors, whether they are trained or not") {
  torch::nn::Module frozen;
  frozen.register_parameter("w", at::ones({1}, at::kMeta), /*requires_grad=*/false);
  CHECK(frugal::detail::device_of_tensors(frozen).is_meta());
  torch::nn::Module buffers;
  CHECK(frugal::detail::device_of_tensors(buffers).is_cpu());
  buffers.register_buffer("b", at::ones({1}, at::kMeta));
  CHECK(frugal::detail::device_of_tensors(buffers).is_meta());
}

TEST_CASE("places of a tensor are counted by its memory, and by every path to a layer") {
  Tied tied;
  TensorPlaceCounts const places(tied);
  CHECK(places.of(tied.words->weight) == 2);
  CHECK(places.of(tied.head->bias) == 1);
  CHECK(places.of(at::Tensor()) == 0);
  torch::nn::Sequential net(Linear(4, 4), Linear(4, 4), Linear(4, 4));
  // One's numbers in two tensors, and a buffer of which two weights are parts.
  at::Tensor const flat = at::ones({32});
  net[0]->as<Linear>()->weight.set_data(flat.narrow(0, 0, 16).view({4, 4}));
  net[1]->as<Linear>()->weight.set_data(flat.narrow(0, 0, 16).view({4, 4}).t());
  net[2]->as<Linear>()->weight.set_data(flat.narrow(0, 16, 16).view({4, 4}));
  TensorPlaceCounts const parts(*net);
  CHECK(parts.shared(net[0]->as<Linear>()->weight));
  CHECK(parts.shared(net[1]->as<Linear>()->weight));
  CHECK_FALSE(parts.shared(net[2]->as<Linear>()->weight));
  torch::nn::Sequential twice;
  Linear const layer(4, 4);
  twice->push_back(layer);
  twice->push_back(layer);
  CHECK(TensorPlaceCounts(*twice).of(layer->weight) == 2);
}

TEST_CASE("a number is beyond a type by its magnitude, and infinities stay what they are") {
  double const infinity = std::numeric_limits<double>::infinity();
  CHECK_FALSE(beyond_range(at::tensor({65504.0, -65504.0}), at::kHalf));
  CHECK(*beyond_range(at::tensor({1.0, -70000.0}), at::kHalf) == 70000);
  CHECK_FALSE(beyond_range(at::tensor({1.0, -infinity, std::nan("")}), at::kHalf));
  CHECK(*beyond_range(at::tensor({70000.0, -infinity, std::nan("")}), at::kHalf) == 70000);
  CHECK_FALSE(beyond_range(at::tensor({70000.0}), at::kBFloat16));
  CHECK(beyond_range(at::tensor({1e39}, at::kDouble), at::kFloat));
  CHECK(beyond_range(at::tensor({500.0}).to(at::kFloat8_e5m2), at::kFloat8_e4m3fn));
  CHECK_FALSE(beyond_range(at::tensor({70000}, at::kInt), at::kHalf));
  CHECK_FALSE(beyond_range(at::empty({0}), at::kHalf));
}

}  // namespace frugal_test::layer_tensors
