// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/pooling.h>
#include <torch/serialize.h>

#include <frugal/model/qat.hpp>
#include <frugal/policy/optimize.hpp>
#include <frugal/policy/recompute.hpp>
#include <frugal/policy/skip_non_finite.hpp>
#include <frugal/trainer.hpp>

#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "support/reference.hpp"

namespace frugal_test::model_qat {

using namespace frugal_test::support;
using frugal::INT8;
using frugal::Learned;
using frugal::Moving;
using frugal::Optimize;
using frugal::Qat;
using frugal::SGD;
using frugal::detail::LearnedRanges;
using frugal::detail::MovingRanges;
using torch::nn::Linear;
using torch::nn::Sequential;

/// Tensors of tests/reference/quantize.json.
struct File {
  Json file = reference("quantize.json");
  std::int64_t inputs = file.at("inputs"), outputs = file.at("outputs"), rows = file.at("rows");

  at::Tensor batch(Json const& values) const { return tensor_in(values, {rows, inputs}); }
  at::Tensor weight(Json const& values) const { return tensor_in(values, {outputs, inputs}); }
};

TEST_CASE(
    "moving ranges of inputs have the bits of torch.ao's fake quantization, and its gradients") {
  File const which;
  Json const& of = which.file.at("moving");
  MovingRanges fake(of.at("averaging"));
  CHECK_FALSE(fake.ranged());
  int step = 0;
  for (Json const& each : of.at("steps")) {
    fake.train(step++ < 3);
    at::Tensor input = which.batch(each.at("input")).requires_grad_();
    at::Tensor const rounded = fake.input(input);
    rounded.sum().backward();
    CHECK(at::equal(rounded, which.batch(each.at("output"))));
    CHECK(at::equal(input.grad(), which.batch(each.at("gradient"))));
    CHECK(static_cast<float>(fake.grid().scale) == each.at("scale").get<float>());
    CHECK(fake.grid().zero_point == each.at("zero_point").get<int>());
  }
  CHECK(step == 4);
}

TEST_CASE("weights have the bits of torch.fake_quantize, its gradients, and its integers") {
  File const which;
  Json const& of = which.file.at("weights");
  MovingRanges fake(0.01);
  at::Tensor weight = which.weight(of.at("weight")).requires_grad_();
  at::Tensor const rounded = fake.weight(weight);
  rounded.sum().backward();
  CHECK(at::equal(rounded, which.weight(of.at("rounded"))));
  CHECK(at::equal(weight.grad(), which.weight(of.at("gradient"))));
  auto const integers = fake.integers(weight);
  CHECK(at::equal(integers.values, which.weight(of.at("integers")).to(at::kChar)));
  CHECK(at::equal(integers.values.to(at::kFloat) * integers.scales.unsqueeze(1), rounded));
}

TEST_CASE("a learned range has torch.ao's numbers and gradients") {
  File const which;
  Json const& of = which.file.at("learned");
  LearnedRanges fake(at::ones({which.outputs, which.inputs}));
  auto const parameters = fake.named_parameters();
  {
    at::NoGradGuard const no_gradients;
    parameters["scale"].fill_(of.at("scale").get<double>());
    parameters["zero_point"].fill_(of.at("zero_point").get<double>());
    fake.named_buffers()["begun"].fill_(true);
  }
  at::Tensor input = which.batch(of.at("input")).requires_grad_();
  at::Tensor const rounded = fake.input(input);
  CHECK(at::equal(rounded, which.batch(of.at("output"))));
  (rounded * which.batch(of.at("up"))).sum().backward();
  CHECK(at::equal(input.grad(), which.batch(of.at("gradient"))));
  // torch.ao weighs gradients by 1 / sqrt(numel * quant_max), as LSQ does.
  CHECK(parameters["scale"].grad().item<double>() ==
        doctest::Approx(of.at("of_scale").get<double>()).epsilon(1e-5));
  CHECK(parameters["zero_point"].grad().item<double>() ==
        doctest::Approx(of.at("of_zero_point").get<double>()).epsilon(1e-5));
}

struct Classes {
  template <class Module>
  at::Tensor operator()(Module& module, frugal::Batch const& batch) const {
    return at::cross_entropy_loss(frugal::forward(module, batch.data), batch.target);
  }
};

std::vector<frugal::Batch> batches() {
  torch::manual_seed(20);
  std::vector<frugal::Batch> made;
  for (int i = 0; i < 8; ++i) {
    at::Tensor const x = torch::randn({16, 2, 8, 8});
    made.push_back({x, x.flatten(1).slice(1, 0, 4).argmax(1)});
  }
  return made;
}
Sequential network() {
  torch::manual_seed(21);
  return Sequential(torch::nn::Conv2d(torch::nn::Conv2dOptions(2, 8, 3).padding(1).bias(false)),
                    torch::nn::BatchNorm2d(8), torch::nn::ReLU(),
                    torch::nn::Conv2d(torch::nn::Conv2dOptions(8, 8, 3).stride(2)),
                    torch::nn::BatchNorm2d(8), torch::nn::ReLU(), torch::nn::Flatten(),
                    Linear(72, 16), torch::nn::ReLU(), Linear(16, 4));
}

template <class Ranges, class... Ps>
Sequential trained(Ranges, int epochs = 2, Ps const&... policies) {
  Sequential net = network();
  frugal::Trainer trainer{net,
                          Classes{},
                          frugal::Settings{.epochs = static_cast<std::uint64_t>(epochs)},
                          Optimize<SGD>{.lr = 0.01},
                          Qat<INT8, Ranges>{.averaging = 0.1},
                          policies...};
  auto const report = trainer.fit(batches());
  CHECK(report.steps == static_cast<std::uint64_t>(8 * epochs));
  net->eval();
  return net;
}

at::Tensor outputs(Sequential& net) {
  at::NoGradGuard const no_gradients;
  return net->forward(batches().front().data).clone();
}

/// Integers of a layer's weight and of an input, before and after conversion.
template <class Ranges>
void converts() {
  Sequential net = trained(Ranges{});
  at::Tensor const fake = outputs(net);
  std::map<std::string, at::Tensor> rounded;
  at::Tensor const input = batches().front().data;
  std::map<std::string, at::Tensor> rounded_inputs;
  std::map<std::string, std::int64_t> zero_points;
  std::map<std::string, double> scales;
  for (auto const& item : net->named_modules()) {
    auto const child = std::dynamic_pointer_cast<frugal::detail::FakeQuantized>(item.value());
    if (!child) continue;
    std::string const layer = item.key().substr(0, item.key().find('.'));
    at::NoGradGuard const no_gradients;
    rounded[layer] = child->weight(net->named_parameters()[layer + ".weight"]);
    rounded_inputs[layer] = child->input(input).clone();
    zero_points[layer] = child->grid().zero_point;
    scales[layer] = child->grid().scale;
  }
  REQUIRE(rounded.size() == 4);
  auto const made = frugal::convert(net);
  CHECK((made.layers == std::vector<std::string>{"0", "3", "7", "9"}));
  auto const buffers = net->named_buffers();
  for (auto const& [layer, expected] : rounded) {
    CAPTURE(layer);
    at::Tensor const values = buffers[layer + ".quantized.values"];
    // Each output's numbers are its integers times one scale.
    at::Tensor const numbers = expected.flatten(1);
    at::Tensor const integers = values.flatten(1).to(at::kFloat);
    at::Tensor const scale = numbers.abs().amax(1) / integers.abs().amax(1);
    CHECK(distance(integers * scale.unsqueeze(1), numbers) <=
          1e-6 * numbers.abs().max().item<double>());
    CHECK(integers.abs().max().item<double>() > 100);
    // The input's, by the grid that the converted layer has.
    at::Tensor const grid = buffers[layer + ".quantized.input_grid"];
    CHECK(grid[0].item<double>() == scales[layer]);
    CHECK(grid[1].item<std::int64_t>() == zero_points[layer]);
    auto const on_grid = frugal::detail::Int8Format::on_grid(
        input.flatten(1), grid[0].item<double>(), grid[1].item<std::int64_t>(), 0);
    at::Tensor const again = on_grid.values.view(at::kByte)
                                 .to(at::kFloat)
                                 .sub_(zero_points[layer])
                                 .mul_(static_cast<float>(scales[layer]));
    CHECK(at::equal(again, rounded_inputs[layer].flatten(1)));
  }
  // BatchNorm is part of the scales.
  for (auto const& item : net->named_modules()) {
    CHECK(std::dynamic_pointer_cast<torch::nn::BatchNorm2dImpl>(item.value()) == nullptr);
  }
  at::Tensor const converted = outputs(net);
  CHECK(distance(converted, fake) <= 2e-2 * fake.abs().max().item<double>());
  CHECK(at::equal(converted.argmax(1), fake.argmax(1)));
  CHECK(static_cast<double>(made.bytes) < 0.5 * static_cast<double>(made.bytes_before));
}

TEST_CASE("a converted module has the integers of training, with moving ranges") {
  converts<Moving>();
}
TEST_CASE("a converted module has the integers of training, with learned ranges") {
  converts<Learned>();
}

TEST_CASE("training learns under rounding, and learned scales are trained") {
  Sequential net = trained(Learned{});
  auto const parameters = net->named_parameters();
  Sequential other = trained(Learned{}, 1);
  CHECK(parameters.contains("0.fake_quantized.scale"));
  CHECK(distance(parameters["0.fake_quantized.weight_scale"],
                 other->named_parameters()["0.fake_quantized.weight_scale"]) > 0);
}

TEST_CASE("ranges are saved with the module, and a second fit keeps them") {
  Sequential net = trained(Moving{});
  std::stringstream file;
  torch::save(net, file);
  Sequential other = network();
  frugal::adapt(other, Qat<INT8>{});
  torch::load(other, file);
  other->eval();
  CHECK(at::equal(outputs(other), outputs(net)));
  frugal::convert(other);
  frugal::adapt(net, Qat<INT8>{});  // the second time it does nothing
  frugal::convert(net);
  CHECK(at::equal(outputs(other), outputs(net)));
}

TEST_CASE("a frozen weight, a module that is quantized, and one without ranges are errors") {
  Sequential frozen = network();
  frozen->named_parameters()["7.weight"].set_requires_grad(false);
  CHECK_THROWS_AS(frugal::adapt(frozen, Qat<INT8>{}), frugal::SettingsError);
  CHECK(frozen->named_buffers().size() == network()->named_buffers().size());
  Qat<INT8> const but{.layers = {.except = frugal::NamePatterns{"7"}}};
  frugal::adapt(frozen, but);
  CHECK_THROWS_AS(frugal::convert(frozen), frugal::StateError);  // no step has seen an input
  Sequential quantized = network();
  frugal::quantize<INT8>(quantized);
  CHECK_THROWS_AS(frugal::adapt(quantized, Qat<INT8>{}), frugal::SettingsError);
  Sequential plain = network();
  CHECK_THROWS_AS(frugal::convert(plain), frugal::StateError);
  frugal::adapt(plain, Qat<INT8>{});
  CHECK_THROWS_AS(frugal::quantize<INT8>(plain), frugal::SettingsError);
}

TEST_CASE("every call of a trainer adapts the module, so a fresh process loads what was trained") {
  std::vector<frugal::Batch> const rows{{torch::randn({4, 8}), torch::randn({4, 8})}};
  auto const trainer_of = [](Sequential net) {
    return frugal::Trainer{net, frugal::MeanSquaredError{}, frugal::Settings{.steps = 3},
                           Optimize<SGD>{.lr = 0.1}, Qat<INT8>{}};
  };
  auto trained = trainer_of(Sequential(Linear(8, 8)));
  static_cast<void>(trained.fit(rows));
  std::stringstream file;
  torch::save(trained.module(), file);
  auto fresh = trainer_of(Sequential(Linear(8, 8)));
  fresh.adapt();
  torch::load(fresh.module(), file);
  CHECK(fresh.evaluate(rows)["loss"] == trained.evaluate(rows)["loss"]);
  frugal::convert(fresh.module());
  CHECK(fresh.evaluate(rows)["loss"] ==
        doctest::Approx(trained.evaluate(rows)["loss"]).epsilon(1e-4));
  CHECK_THROWS_WITH_AS(fresh.fit(rows), doctest::Contains("quantized already"),
                       frugal::SettingsError);
}

TEST_CASE(
    "ranges do not begin with an input that is not finite, and are not converted if diverged") {
  double const infinite = std::numeric_limits<double>::infinity();
  Sequential net(Linear(8, 8));
  frugal::adapt(net, Qat<INT8, Learned>{});
  net->forward(at::full({2, 8}, infinite));
  CHECK_THROWS_WITH_AS(frugal::convert(net), doctest::Contains("no range"), frugal::StateError);
  at::Tensor const rows = torch::randn({2, 8});
  CHECK(net->forward(rows).isfinite().all().item<bool>());
  at::NoGradGuard const no_gradients;
  net->named_parameters()["0.fake_quantized.weight_scale"][0] = infinite;
  CHECK_THROWS_WITH_AS(frugal::convert(net), doctest::Contains("scales of layer '0'"),
                       frugal::StateError);
  Sequential moving(Linear(8, 8));
  frugal::adapt(moving, Qat<INT8>{});
  moving->forward(at::cat({rows, at::full({2, 8}, infinite)}));
  CHECK_THROWS_WITH_AS(frugal::convert(moving), doctest::Contains("not finite"),
                       frugal::StateError);
}

TEST_CASE("a window that is skipped leaves no range, also if it is the first") {
  std::vector<frugal::Batch> rows{{torch::randn({4, 8}), torch::randn({4, 8})},
                                  {torch::randn({4, 8}), torch::randn({4, 8})}};
  rows[0].data[0][0] = std::numeric_limits<float>::quiet_NaN();
  for (bool const first_is_bad : {true, false}) {
    if (!first_is_bad) std::swap(rows[0], rows[1]);
    frugal::Trainer trainer{Sequential(Linear(8, 8)),
                            frugal::MeanSquaredError{},
                            frugal::Settings{.epochs = 2},
                            Optimize<SGD>{.lr = 0.1},
                            Qat<INT8>{},
                            frugal::SkipNonFinite{}};
    auto const report = trainer.fit(rows);
    CHECK(report.steps == 2);
    CHECK(trainer.module()->named_buffers()["0.fake_quantized.least"].item<double>() ==
          doctest::Approx(rows[first_is_bad ? 1 : 0].data.min().item<double>()));
  }
}

TEST_CASE("a weight that outlives its module has no ranges any more") {
  at::Tensor weight;
  {
    Sequential net(Linear(8, 8));
    frugal::adapt(net, Qat<INT8>{});
    weight = net->named_parameters()["0.weight"];
  }
  at::Tensor const input = torch::randn({2, 8});
  CHECK(at::equal(at::linear(input, weight), at::linear(input, weight.clone())));
}

TEST_CASE("recomputation sees each batch once in the ranges") {
  Sequential const plain = trained(Moving{});
  Sequential const recomputed = trained(Moving{}, 2, frugal::Recompute<>{});
  for (auto const& item : plain->named_buffers()) {
    CAPTURE(item.key());
    CHECK(at::equal(item.value(), recomputed->named_buffers()[item.key()]));
  }
  for (auto const& item : plain->named_parameters()) {
    CHECK(at::equal(item.value(), recomputed->named_parameters()[item.key()]));
  }
}

}  // namespace frugal_test::model_qat
