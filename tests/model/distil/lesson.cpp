// SPDX-License-Identifier: Apache-2.0
#include <frugal/model/distil/lesson.hpp>

#include <doctest/doctest.h>

#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/normalization.h>

#include <thread>

namespace frugal_test::model_distil_layer_outputs {

using namespace frugal;
using namespace frugal::detail;

/// Keeps what each layer gives, as it gives it.
struct Net : torch::nn::Module {
  Net() {
    torch::manual_seed(2);
    register_module("embed", embed);
    register_module("linear", linear);
    register_module("norm", norm);
    register_module("conv", conv);
  }
  at::Tensor forward(at::Tensor const& ids) {
    embedded = embed->forward(ids);             // [B, T, 6]
    hidden = linear->forward(embedded);         // [B, T, 8]
    normal = norm->forward(hidden.relu());      // [B, T, 8]
    seen = conv->forward(normal.unsqueeze(1));  // [B, 3, T, 8]
    return seen.mean();
  }
  torch::nn::Embedding embed{10, 6};
  torch::nn::Linear linear{6, 8};
  torch::nn::LayerNorm norm{torch::nn::LayerNormOptions({8})};
  torch::nn::Conv2d conv{torch::nn::Conv2dOptions(1, 3, 3).padding(1)};
  at::Tensor embedded, hidden, normal, seen;
};

at::Tensor ids() { return torch::arange(12).remainder(10).view({3, 4}); }

TEST_CASE("layers are seen by name, with their bias, as the module sees them") {
  Net net;
  std::vector<WatchedLayer> const layers{
      watched_layer(net, "embed", "student"), watched_layer(net, "linear", "student"),
      watched_layer(net, "norm", "student"), watched_layer(net, "conv.weight", "student")};
  CHECK(layers[0].width == 6);
  CHECK(layers[1].width == 8);
  CHECK(layers[2].width == 8);
  CHECK(layers[3].width == 3);
  LayerOutputs const outputs(layers);
  net.forward(ids());
  CHECK(outputs.of(0).equal(net.embedded));
  CHECK(outputs.of(1).equal(net.hidden));  // LibTorch adds the bias of 3-D inputs in place
  CHECK(outputs.of(2).equal(net.normal));
  CHECK(outputs.of(3).equal(net.seen));
  outputs.of(1).sum().backward();
  CHECK(net.linear->bias.grad().equal(at::full({8}, 12.0F)));
}

TEST_CASE("afterwards nothing is seen, and the results are the same") {
  Net net;
  at::Tensor const before = net.forward(ids());
  std::vector<WatchedLayer> const layers{watched_layer(net, "linear", "student")};
  at::Tensor during;
  {
    LayerOutputs const outputs(layers);
    during = net.forward(ids());
  }
  CHECK(during.equal(before));
  CHECK_FALSE(Interceptions::all().of(net.linear->weight));
}

TEST_CASE("a layer that is not called once is an error that says how often it was") {
  Net net;
  std::vector<WatchedLayer> const layers{watched_layer(net, "linear", "student")};
  LayerOutputs const none(layers);
  CHECK_THROWS_WITH_AS(none.of(0), doctest::Contains("called 0 times"), ModuleError);
  LayerOutputs const twice(layers);
  net.forward(ids());
  net.forward(ids());
  CHECK_THROWS_WITH_AS(twice.of(0), doctest::Contains("called 2 times"), ModuleError);
}

TEST_CASE("calls of another thread and of a layer with a tied weight are not meant") {
  Net net;
  std::vector<WatchedLayer> const layers{watched_layer(net, "embed", "student")};
  LayerOutputs const outputs(layers);
  std::thread([&] {
    use_interception();
    net.forward(ids());
  }).join();
  net.forward(ids());
  at::linear(at::ones({2, 6}), net.embed->weight);  // an output layer
  CHECK(outputs.of(0).sizes() == at::IntArrayRef{3, 4, 6});
}

TEST_CASE("a name that is no layer is an error with the names of the layers") {
  Net net;
  CHECK_THROWS_WITH_AS(watched_layer(net, "lineer", "student"),
                       doctest::Contains("embed linear norm conv"), SettingsError);
  torch::nn::Sequential plain{torch::nn::ReLU()};
  CHECK_THROWS_WITH_AS(watched_layer(*plain, "0", "teacher"),
                       doctest::Contains("teacher has no layer \"0\""), SettingsError);
}

}  // namespace frugal_test::model_distil_layer_outputs
