// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <frugal/model/qat.hpp>
#include <frugal/model/quantize.hpp>
#include <frugal/policy/optimize.hpp>
#include <frugal/trainer.hpp>

#include "support/reference.hpp"

#include <c10/core/InferenceMode.h>
#include <torch/autograd.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>
#include <torch/serialize.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <sstream>
#include <string>
#include <thread>
#include <variant>
#include <vector>

namespace frugal_test::model_quantize {

using namespace frugal_test::support;
using frugal::INT4;
using frugal::INT8;
using frugal::quantize;
using torch::nn::Conv2d;
using torch::nn::Conv2dOptions;
using torch::nn::Linear;
using torch::nn::ReLU;
using torch::nn::Sequential;

Sequential network() {
  torch::manual_seed(10);
  return Sequential(Linear(64, 256), ReLU(), Linear(256, 128), ReLU(), Linear(128, 64));
}
at::Tensor rows(std::int64_t count = 32) {
  torch::manual_seed(11);
  return torch::randn({count, 64});
}
double apart(at::Tensor const& a, at::Tensor const& b) {
  return ((a - b).norm() / b.norm()).item<double>();
}
at::Tensor outputs(Sequential& net, at::Tensor const& input) {
  at::NoGradGuard const no_gradients;
  return net->forward(input).clone();
}

/// The static layer of the fixture.
struct StaticFile {
  Json file = reference("quantize.json");
  Json of = file.at("static");
  std::int64_t inputs = file.at("inputs"), outputs = file.at("outputs"), count = file.at("rows");
  at::Tensor input = tensor_in(of.at("input"), {count, inputs});

  Linear layer() const {
    Linear made(inputs, outputs);
    at::NoGradGuard const no_gradients;
    made->weight.copy_(tensor_in(of.at("weight"), {outputs, inputs}));
    made->bias.copy_(tensor_in(of.at("bias"), {outputs}));
    return made;
  }
};

TEST_CASE("a static layer has torch's integers, of weight and input, and their exact product") {
  StaticFile const which;
  Linear layer = which.layer();
  std::vector<at::Tensor> const batches{which.input};
  quantize<INT8>(layer, batches);
  at::Tensor const expected =
      tensor_in(which.file.at("weights").at("integers"), {which.outputs, which.inputs}, at::kChar);
  auto const buffers = layer->named_buffers();
  CHECK(at::equal(buffers["quantized.values"], expected));
  double const scale = which.of.at("scale");
  CHECK(buffers["quantized.input_grid"][0].item<double>() == doctest::Approx(scale).epsilon(1e-7));
  CHECK(buffers["quantized.input_grid"][1].item<int>() == which.of.at("zero_point").get<int>());
  auto const integers = frugal::detail::Int8Format::on_grid(
      which.input, buffers["quantized.input_grid"][0].item<double>(), which.of.at("zero_point"), 0);
  CHECK(at::equal(integers.values.view(at::kByte),
                  tensor_in(which.of.at("integers"), {which.count, which.inputs}, at::kByte)));
  at::NoGradGuard const no_gradients;
  at::Tensor const output = tensor_in(which.of.at("output"), {which.count, which.outputs});
  CHECK(distance(layer->forward(which.input), output) < 1e-5);
}

TEST_CASE("a dynamic layer is the product of the integers of its rows") {
  Linear layer(24, 16);
  at::Tensor const input = torch::randn({2, 3, 24});
  at::Tensor const weight = layer->weight.detach().clone();
  auto const rounded = [](at::Tensor const& matrix) {
    at::Tensor const scales = matrix.abs().amax(-1, true) / 127;
    return (matrix / scales).round() * scales;
  };
  quantize<INT8>(layer);
  at::NoGradGuard const no_gradients;
  at::Tensor const output = layer->forward(input);
  at::Tensor const expected = at::linear(rounded(input), rounded(weight), layer->bias);
  CHECK(output.sizes() == expected.sizes());
  CHECK(distance(output, expected) < 1e-5);
}

TEST_CASE("every way of finding ranges keeps the outputs, and a quarter of the memory") {
  at::Tensor const input = rows(256);
  std::vector<at::Tensor> const batches{input.slice(0, 0, 100), input.slice(0, 100)};
  Sequential plain = network();
  at::Tensor const expected = outputs(plain, input);
  auto const check = [&](auto const& made, Sequential& net, double error, double share) {
    CHECK((made.layers == std::vector<std::string>{"0", "2", "4"}));
    CHECK(static_cast<double>(made.bytes) < share * static_cast<double>(made.bytes_before));
    double const found = apart(outputs(net, input), expected);
    CAPTURE(found);
    CHECK(found < error);
    CHECK(found > 0);
  };
  Sequential dynamic = network(), min_max = network(), percentile = network(), entropy = network(),
             int4 = network();
  check(quantize<INT8>(dynamic), dynamic, 0.02, 0.30);
  check(quantize<INT8>(min_max, batches), min_max, 0.02, 0.30);
  check(quantize<INT8>(percentile, batches, frugal::Percentile{}), percentile, 0.02, 0.30);
  check(quantize<INT8>(entropy, batches, frugal::Entropy{}), entropy, 0.10, 0.30);
  check(quantize<INT4>(int4), int4, 0.15, 0.20);
  CHECK_FALSE(at::equal(outputs(min_max, input), outputs(percentile, input)));
}

TEST_CASE("convolutions have the product of their integers, padding and stride included") {
  torch::manual_seed(12);
  at::Tensor const images = torch::rand({3, 8, 11, 9}) + 0.3;
  std::vector<at::Tensor> const batches{images};
  for (bool const calibrated : {false, true}) {
    for (Conv2dOptions const& options :
         {Conv2dOptions(8, 16, 3).padding(1), Conv2dOptions(8, 6, {3, 2}).stride(2).bias(false),
          Conv2dOptions(8, 16, 3).padding({2, 1}).dilation({2, 1}).stride({1, 3})}) {
      Conv2d layer(options);
      at::Tensor const plain = layer->forward(images).detach();
      at::Tensor const weight = layer->weight.detach().clone();
      if (calibrated) {
        quantize<INT8>(layer, batches);
      } else {
        quantize<INT8>(layer);
      }
      at::NoGradGuard const no_gradients;
      at::Tensor rounded;
      auto const buffers = layer->named_buffers();
      if (calibrated) {
        double const scale = buffers["quantized.input_grid"][0].item<double>();
        auto const zero = buffers["quantized.input_grid"][1].item<std::int64_t>();
        rounded = at::fake_quantize_per_tensor_affine(images, scale, zero, 0, 255);
      } else {
        at::Tensor const scales = images.flatten(1).abs().amax(1).div_(127).view({-1, 1, 1, 1});
        rounded = (images / scales).round() * scales;
      }
      at::Tensor const scales = weight.flatten(1).abs().amax(1).div_(127).view({-1, 1, 1, 1});
      at::Tensor const expected = at::conv2d(
          rounded, (weight / scales).round() * scales, layer->bias, layer->options.stride(),
          std::get<torch::ExpandingArray<2>>(layer->options.padding()), layer->options.dilation());
      at::Tensor const found = layer->forward(images);
      CHECK(found.is_contiguous());
      CHECK(distance(found, expected) < 1e-4);
      CHECK(apart(found, plain) < 0.02);
      CHECK(distance(layer->forward(images[1]), found[1]) < 1e-6);
    }
  }
}

TEST_CASE("a quantized module saves and loads, into a module quantized in the same way") {
  at::Tensor const input = rows();
  std::vector<at::Tensor> const batches{input};
  Sequential first = network();
  quantize<INT8>(first, batches);
  torch::manual_seed(99);
  Sequential second(Linear(64, 256), ReLU(), Linear(256, 128), ReLU(), Linear(128, 64));
  quantize<INT8>(second, std::vector<at::Tensor>{torch::randn({4, 64})});
  CHECK_FALSE(at::equal(outputs(first, input), outputs(second, input)));
  std::stringstream file;
  torch::save(first, file);
  torch::load(second, file);
  CHECK(at::equal(outputs(first, input), outputs(second, input)));
  CHECK(first->parameters().size() == 3);  // biases
}

struct Classes {
  template <class Module>
  at::Tensor operator()(Module& module, frugal::Batch const& batch) const {
    return at::cross_entropy_loss(frugal::forward(module, batch.data), batch.target);
  }
};

TEST_CASE("a trainer evaluates and predicts with it, in another thread too") {
  at::Tensor const input = rows();
  std::vector<frugal::Batch> const source{{input, input.argmax(1)}};
  Sequential net = network();
  quantize<INT8>(net);
  frugal::Trainer trainer{net, Classes{}};
  double const expected =
      at::cross_entropy_loss(outputs(net, input), source.front().target).item<double>();
  double found = 0;
  at::Tensor predicted;
  std::thread([&] {
    found = trainer.evaluate(source)["loss"];
    trainer.predict(source, [&](at::Tensor const& out, auto const&) { predicted = out; });
  }).join();
  CHECK(found == doctest::Approx(expected).epsilon(1e-7));
  CHECK(at::equal(predicted, outputs(net, input)));
}

TEST_CASE("layers in front of a quantized one are trained through it") {
  torch::manual_seed(13);
  Sequential net(Linear(64, 64), ReLU(), Linear(64, 64));
  quantize<INT8>(net, {.only = frugal::NamePatterns{"2"}});
  at::Tensor const weight = net->named_buffers()["2.quantized.values"].to(at::kFloat) *
                            net->named_buffers()["2.quantized.scales"].unsqueeze(1);
  at::Tensor const input = rows();
  at::Tensor const hidden = net[0]->as<Linear>()->forward(input).relu();
  at::Tensor const by_hand =
      torch::autograd::grad({at::linear(hidden, weight, net[2]->as<Linear>()->bias).square().sum()},
                            {net[0]->as<Linear>()->weight})[0];
  net->forward(input).square().sum().backward();
  CHECK(distance(net[0]->as<Linear>()->weight.grad(), by_hand) <=
        1e-5 * by_hand.abs().max().item<double>());
}

TEST_CASE("patterns choose layers, and one that matches nothing is an error that changes nothing") {
  Sequential net = network();
  at::Tensor const before = outputs(net, rows());
  CHECK_THROWS_AS(quantize<INT8>(net, {.except = frugal::NamePatterns{"head"}}),
                  frugal::SettingsError);
  CHECK(at::equal(outputs(net, rows()), before));
  auto const made = quantize<INT8>(net, {.except = frugal::NamePatterns{"4"}});
  CHECK((made.layers == std::vector<std::string>{"0", "2"}));
  CHECK(net->named_parameters().contains("4.weight"));
  CHECK_FALSE(net->named_parameters().contains("2.weight"));
  // The rest may follow, once.
  CHECK((quantize<INT8>(net).layers == std::vector<std::string>{"4"}));
  CHECK_THROWS_AS(quantize<INT8>(net), frugal::SettingsError);
}

TEST_CASE(
    "a weight that two layers have, convolutions in groups and other formats stay as they are") {
  struct Tied : torch::nn::Module {
    torch::nn::Embedding words = register_module("words", torch::nn::Embedding(32, 64));
    Linear head = register_module("head", Linear(64, 32));
    Linear other = register_module("other", Linear(64, 64));
    Conv2d grouped = register_module("grouped", Conv2d(Conv2dOptions(4, 4, 3).groups(2)));
    Linear wide = register_module("wide", Linear(64, 64));
    Tied() {
      head->weight = words->weight;
      head->register_parameter("tied", words->weight);
      wide->to(at::kDouble);
    }
  };
  Tied net;
  CHECK((quantize<INT8>(net).layers == std::vector<std::string>{"other"}));
}

TEST_CASE("whoever reads the weight in another way gets no numbers") {
  Linear layer(64, 64);
  quantize<INT8>(layer);
  CHECK((layer->weight.sizes() == at::IntArrayRef{64, 64}));
  CHECK(at::linear(torch::randn({2, 64}), layer->weight.clone()).isnan().all().item<bool>());
}

TEST_CASE("a layer whose calls are not seen, since it was made in InferenceMode, is an error") {
  c10::InferenceMode const inference;
  Linear layer(64, 64);
  CHECK_THROWS_WITH_AS(quantize<INT8>(layer), doctest::Contains("InferenceMode"),
                       frugal::SettingsError);
  CHECK(layer->weight.isfinite().all().item<bool>());
}

TEST_CASE("a layer whose calls are not seen, since its weight is a view, is an error") {
  Linear layer(64, 64);
  at::Tensor const flat = torch::randn({64 * 64});
  layer->weight = flat.view({64, 64}).set_requires_grad(true);
  frugal::detail::own_parameters(*layer)["weight"] = layer->weight;
  CHECK_THROWS_WITH_AS(quantize<INT8>(layer), doctest::Contains("view of another"),
                       frugal::SettingsError);
}

TEST_CASE("inputs that a layer cannot take are refused as the layer refused them") {
  at::NoGradGuard const no_gradients;
  for (std::int64_t const stride : {1, 2, 3}) {
    CAPTURE(stride);
    Conv2d layer(Conv2dOptions(3, 8, 3).stride(stride));
    quantize<INT8>(layer);
    CHECK_THROWS_WITH(layer->forward(torch::randn({1, 3, 2, 2})),
                      doctest::Contains("greater than actual input size"));
    CHECK_THROWS_WITH(layer->forward(torch::randn({1, 4, 8, 8})),
                      doctest::Contains("to have 3 channels"));
    CHECK_THROWS_WITH(layer->forward(torch::randn({8, 8})), doctest::Contains("unbatched"));
  }
}

TEST_CASE("rows of another width and strides that are none are refused as the layer refused them") {
  torch::manual_seed(27);
  for (bool const is_static : {false, true}) {
    Sequential net(Linear(8, 3));
    if (is_static) {
      quantize<INT8>(net, std::vector<frugal::Batch>{{torch::randn({16, 8}), torch::zeros({16})}});
    } else {
      quantize<INT8>(net);
    }
    CHECK_THROWS_AS(static_cast<void>(net->forward(torch::randn({2, 4}))), c10::Error);
    CHECK_THROWS_AS(static_cast<void>(net->forward(torch::randn({4, 4}))), c10::Error);
  }
  at::Tensor const images = torch::randn({1, 2, 6, 6});
  for (auto const& options : {Conv2dOptions(2, 3, 3).stride(0), Conv2dOptions(2, 3, 3).dilation(0),
                              Conv2dOptions(2, 3, 3).padding(-1)}) {
    Sequential net{Conv2d(options)};
    quantize<INT8>(net);
    CHECK_THROWS_AS(static_cast<void>(net->forward(images)), c10::Error);
  }
}

TEST_CASE("an input that is not finite gives outputs that are not") {
  torch::manual_seed(14);
  at::NoGradGuard const no_gradients;
  for (bool const calibrated : {false, true}) {
    at::Tensor input = rows(4);
    std::vector<at::Tensor> const batches{input.clone()};
    at::Tensor images = torch::randn({2, 4, 6, 6});
    std::vector<at::Tensor> const image_batches{images.clone()};
    Linear layer(64, 64);
    Conv2d convolution(Conv2dOptions(4, 8, 3));
    if (calibrated) {
      quantize<INT8>(layer, batches);
      quantize<INT8>(convolution, image_batches);
    } else {
      quantize<INT8>(layer);
      quantize<INT8>(convolution);
    }
    input[1][5] = std::numeric_limits<float>::quiet_NaN();
    images[0][0][2][2] = std::numeric_limits<float>::quiet_NaN();
    CHECK_FALSE(layer->forward(input)[1].isfinite().any().item<bool>());
    CHECK(layer->forward(input)[0].isfinite().all().item<bool>());
    CHECK(convolution->forward(images)[0].isnan().any().item<bool>());
    CHECK(convolution->forward(images)[1].isfinite().all().item<bool>());
  }
}

TEST_CASE("a weight that is not finite is an error, and no layer is quantized") {
  for (double const bad :
       {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
    torch::nn::Sequential net(Linear(64, 64), Linear(64, 64));
    {
      at::NoGradGuard const no_gradients;
      net->named_parameters()["1.weight"][3][4] = bad;
    }
    auto const names = [&] { return net->named_buffers().size() + net->parameters().size(); };
    CHECK_THROWS_WITH_AS(quantize<INT8>(net), doctest::Contains("'1' is"), frugal::ModuleError);
    CHECK_THROWS_WITH_AS(quantize<INT4>(net), doctest::Contains("at [3, 4]"), frugal::ModuleError);
    CHECK_THROWS_AS(quantize<INT8>(net, std::vector<at::Tensor>{rows()}), frugal::ModuleError);
    CHECK(names() == 4);
  }
}

TEST_CASE("a source that does not reach a layer, is empty or not finite is an error") {
  struct Half : torch::nn::Module {
    Linear used = register_module("used", Linear(64, 64));
    Linear unused = register_module("unused", Linear(64, 64));
    at::Tensor forward(at::Tensor const& input) { return used->forward(input); }
  };
  Half net;
  CHECK_THROWS_AS(quantize<INT8>(net, std::vector<at::Tensor>{rows()}), frugal::StateError);
  CHECK_THROWS_AS(quantize<INT8>(net, std::vector<at::Tensor>{}), frugal::EmptySourceError);
  at::Tensor const bad = at::full({1, 64}, std::numeric_limits<float>::infinity());
  CHECK_THROWS_AS(quantize<INT8>(net, std::vector<at::Tensor>{bad}), frugal::StateError);
  at::Tensor const none = at::full({1, 64}, std::numeric_limits<float>::quiet_NaN());
  CHECK_THROWS_WITH_AS(quantize<INT8>(net, std::vector<at::Tensor>{none}),
                       doctest::Contains("'used' is not finite"), frugal::StateError);
  CHECK(net.parameters().size() == 4);
  auto const both = [](Half& module, at::Tensor const& batch) {
    module.unused->forward(module.forward(batch));
  };
  auto const made =
      quantize<INT8>(net, std::vector<at::Tensor>{rows()}, frugal::MinMax{}, {}, both);
  CHECK(made.layers.size() == 2);
}

TEST_CASE("an embedding whose weight a head was given keeps its numbers, and the head its weight") {
  struct Tied : torch::nn::Module {
    torch::nn::Embedding words{register_module("words", torch::nn::Embedding(64, 64))};
    Linear middle{register_module("middle", Linear(64, 64))};
    Linear head{register_module("head", Linear(64, 64))};
    at::Tensor forward(at::Tensor const& ids) { return head(middle(words(ids))); }
  };
  torch::manual_seed(16);
  Tied net;
  // As users of LibTorch tie weights: no name of the module changes.
  net.head->weight = net.words->weight;
  at::Tensor const ids = at::arange(64);
  at::Tensor const rows = net.words(ids).detach().clone();
  at::Tensor const before = net.forward(ids).detach().clone();
  CHECK((quantize<INT8>(net).layers == std::vector<std::string>{"middle"}));
  CHECK(at::equal(net.words(ids), rows));
  CHECK(apart(net.forward(ids).detach(), before) < 0.02);
  CHECK_THROWS_AS(quantize<INT8>(net), frugal::SettingsError);
  // One that is tied to a quantized layer later has that layer's numbers.
  net.words->weight = net.middle->weight;
  at::NoGradGuard const no_gradients;
  at::Tensor const integers = net.named_buffers()["middle.quantized.values"].to(at::kFloat);
  at::Tensor const scales = net.named_buffers()["middle.quantized.scales"];
  CHECK(at::equal(net.words(ids), integers * scales.unsqueeze(1)));
}

}  // namespace frugal_test::model_quantize

namespace frugal_test::model_sensitivity {

using namespace frugal_test::support;
using frugal::INT4;
using frugal::INT8;
using torch::nn::Linear;
using torch::nn::Sequential;

struct Job {
  Sequential net{nullptr};
  at::Tensor input, target;

  Job() {
    torch::manual_seed(40);
    net = Sequential(Linear(64, 64), torch::nn::ReLU(), Linear(64, 64), torch::nn::ReLU(),
                     Linear(64, 64));
    input = torch::randn({64, 64});
    at::NoGradGuard const no_gradients;
    // One weight so large that all others of its row become 0.
    net[2]->as<Linear>()->weight.select(1, 0).mul_(300);
    target = net->forward(input).clone();
  }
  double loss() {
    at::NoGradGuard const no_gradients;
    return at::mse_loss(net->forward(input), target).item<double>();
  }
};

TEST_CASE("the scan names the layer that hurts, with the loss of a module that has it quantized") {
  Job job;
  auto const found = frugal::sensitivity<INT8>(job.net, [&] { return job.loss(); });
  CHECK(found.loss == 0);
  REQUIRE(found.layers.size() == 3);
  CHECK(found.layers.front().layer == "2");
  CHECK(found.layers[0].change >= found.layers[1].change);
  CHECK(found.layers[1].change >= found.layers[2].change);
  CHECK(found.layers.front().change > 2 * found.layers[1].change);
  // Nothing has changed.
  CHECK(job.loss() == 0);
  CHECK(job.net->parameters().size() == 6);
  // Each loss is that of quantize() with this layer alone.
  for (auto const& each : found.layers) {
    Job other;
    frugal::quantize<INT8>(other.net, {.only = frugal::NamePatterns{each.layer}});
    CHECK(other.loss() == doctest::Approx(each.loss).epsilon(1e-6));
  }
  std::ostringstream text;
  text << found;
  CHECK(text.str().find("2: +") != std::string::npos);
}

TEST_CASE("four bits hurt more than eight") {
  Job job;
  auto const loss = [&] { return job.loss(); };
  auto const eight = frugal::sensitivity<INT8>(job.net, loss, {.only = frugal::NamePatterns{"0"}});
  auto const four = frugal::sensitivity<INT4>(job.net, loss, {.only = frugal::NamePatterns{"0"}});
  CHECK(four.layers.at(0).loss > eight.layers.at(0).loss);
}

TEST_CASE("a loss that is no number is the worst") {
  Job job;
  int calls = 0;
  auto const found = frugal::sensitivity<INT8>(job.net, [&] {
    return ++calls == 3 ? std::numeric_limits<double>::quiet_NaN() : job.loss();
  });
  CHECK(found.layers.front().layer == "2");
  CHECK(std::isnan(found.layers.front().change));
}

TEST_CASE("a module that is trained for its quantization is refused, before anything is measured") {
  Job job;
  frugal::adapt(job.net, frugal::Qat<INT8>{});
  int calls = 0;
  CHECK_THROWS_WITH_AS(frugal::sensitivity<INT8>(job.net, [&] { return calls += 1; }),
                       doctest::Contains("is trained with Qat"), frugal::SettingsError);
  CHECK(calls == 0);
}

}  // namespace frugal_test::model_sensitivity
