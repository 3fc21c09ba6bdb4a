// SPDX-License-Identifier: Apache-2.0
// tests/interop/torchscript.py loads such files in Python.
#include <frugal/model/export_torchscript.hpp>

#include <doctest/doctest.h>

#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/dropout.h>
#include <torch/nn/modules/linear.h>
#include <torch/script.h>

#include <frugal/model/lora.hpp>
#include <frugal/model/quantize.hpp>

#include <memory>
#include <sstream>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace frugal_test::model_export_torchscript {

using namespace frugal;

torch::nn::Sequential net() {
  torch::manual_seed(4);
  torch::nn::Sequential made(torch::nn::Conv2d(1, 3, 3), torch::nn::BatchNorm2d(3),
                             torch::nn::ReLU(), torch::nn::Flatten(), torch::nn::Dropout(0.5),
                             torch::nn::Linear(108, 4));
  made->forward(torch::rand({5, 1, 8, 8}));  // statistics
  return made;
}

/// As another program would read it.
torch::jit::Module reloaded(torch::jit::Module const& made) {
  std::stringstream file;
  made.save(file);
  return torch::jit::load(file);
}

at::Tensor output(torch::jit::Module& module, std::vector<c10::IValue> inputs) {
  return module.forward(std::move(inputs)).toTensor();
}

TEST_CASE("an exported module computes what the module computes, for batches of any size") {
  auto module = net();
  auto exported = reloaded(export_torchscript(module, torch::rand({2, 1, 8, 8})));
  CHECK(module->is_training());  // as it was
  module->eval();
  for (std::int64_t const batch : {1, 2, 7}) {
    at::Tensor const x = torch::rand({batch, 1, 8, 8});
    CHECK(at::allclose(output(exported, {x}), module->forward(x), 1e-5, 1e-6));
  }
}

TEST_CASE("its tensors have the module's names, and are its own") {
  auto module = net();
  module->named_parameters()["5.bias"].requires_grad_(false);
  auto exported = export_torchscript(module, torch::rand({2, 1, 8, 8}));
  std::vector<std::string> names;
  for (auto const& item : exported.named_parameters()) {
    names.push_back(item.name);
    CHECK(item.value.equal(module->named_parameters()[item.name]));
    CHECK(item.value.requires_grad() == (item.name != "5.bias"));
    CHECK_FALSE(item.value.is_same(module->named_parameters()[item.name]));
  }
  CHECK(names.size() == module->named_parameters().size());
  CHECK(exported.named_buffers().size() == module->named_buffers().size());
  at::Tensor const x = torch::rand({2, 1, 8, 8});
  at::Tensor const before = output(exported, {x});
  {
    at::NoGradGuard const no_gradients;
    for (at::Tensor& each : module->parameters()) each.zero_();
  }
  CHECK(output(exported, {x}).equal(before));
}

TEST_CASE("each submodule has its mode back, also after an error") {
  auto module = net();
  (*module)[1]->eval();  // frozen statistics
  export_torchscript(module, torch::rand({2, 1, 8, 8}));
  CHECK(module->is_training());
  CHECK_FALSE((*module)[1]->is_training());
  CHECK((*module)[4]->is_training());
  CHECK_THROWS_AS(export_torchscript(module, torch::rand({2, 3})), ModuleError);
  CHECK((*module)[4]->is_training());
}

/// Adds a low-rank product, as LoRA does.
struct LowRank final : LayerHook {
  LowRank(at::Tensor down_, at::Tensor up_) : down(std::move(down_)), up(std::move(up_)) {}
  Place place() const override { return Place::adapt; }
  at::Tensor call(LayerCall const& call, LayerRest const& rest) override {
    return rest(call) + call.input.matmul(down.t()).matmul(up.t());
  }
  at::Tensor down, up;
};

TEST_CASE("a layer with an adapter is exported with it, and its parameters are parameters") {
  torch::nn::Sequential module(torch::nn::Linear(4, 6), torch::nn::ReLU(), torch::nn::Linear(6, 3));
  auto* const layer = (*module)[0]->as<torch::nn::Linear>();
  at::Tensor const weight = layer->weight;
  auto adapter = std::make_shared<torch::nn::Module>("lora");
  auto const hook =
      std::make_shared<LowRank>(adapter->register_parameter("down", torch::rand({2, 4})),
                                adapter->register_parameter("up", torch::rand({6, 2})));
  layer->register_module("lora", adapter);
  at::Tensor const x = torch::rand({3, 4});
  at::Tensor const without = module->forward(x);
  intercept(weight, hook);
  at::Tensor const with = module->forward(x);
  auto exported = reloaded(export_torchscript(module, x));
  release(weight, *hook);
  CHECK_FALSE(at::allclose(with, without, 1e-3, 1e-3));
  CHECK(at::allclose(output(exported, {x}), with, 1e-5, 1e-6));
  CHECK(exported.attr("0").toModule().attr("lora").toModule().hasattr("down"));
}

/// Two inputs, two outputs.
struct Two : torch::nn::Module {
  Two() : line(register_module("line", torch::nn::Linear(4, 2))) {}
  std::tuple<at::Tensor, at::Tensor> forward(at::Tensor const& x, at::Tensor const& mask) {
    at::Tensor const y = line->forward(x);
    return {y, y.masked_fill(mask.unsqueeze(1), 0)};
  }
  torch::nn::Linear line;
};

TEST_CASE("weights in INT8 and NF4 are refused: no trace has their kernels") {
  at::Tensor const rows = torch::randn({4, 64});
  torch::nn::Sequential packed(torch::nn::Linear(64, 64));
  adapt(packed, Lora<Rank<2>, On<"0">, Base<NF4>>{});
  CHECK_THROWS_WITH_AS(export_torchscript(packed, rows), doctest::Contains("kernel of frugal"),
                       ModuleError);
  torch::nn::Sequential integers(torch::nn::Linear(64, 64));
  quantize<INT8>(integers);
  CHECK_THROWS_WITH_AS(export_torchscript(integers, rows), doctest::Contains("'0.quantized'"),
                       ModuleError);
}

TEST_CASE("modules of several inputs and outputs") {
  Two module;
  at::Tensor const mask = torch::tensor({true, false, true});
  auto exported = reloaded(export_torchscript(module, std::tuple{torch::rand({3, 4}), mask}));
  at::Tensor const x = torch::rand({3, 4});
  auto const made = exported.forward({x, mask});
  auto const [first, second] = module.forward(x, mask);
  CHECK(made.toTupleRef().elements()[0].toTensor().equal(first));
  CHECK(made.toTupleRef().elements()[1].toTensor().equal(second));
}

template <class F>
struct Of : torch::nn::Module {
  explicit Of(F f_)
      : line(
            register_module("line", torch::nn::Linear(torch::nn::LinearOptions(4, 2).bias(false)))),
        f(std::move(f_)) {}
  at::Tensor forward(at::Tensor const& x) { return f(line->forward(x)); }
  torch::nn::Linear line;
  F f;
};

template <class F>
void refuses(F f, std::string const& why) {
  Of<F> module(std::move(f));
  CAPTURE(why);
  CHECK_THROWS_WITH_AS(export_torchscript(module, torch::rand({3, 4})),
                       doctest::Contains(why.c_str()), ModuleError);
}

TEST_CASE("a module whose trace depends on the data is refused") {
  refuses([](at::Tensor const& x) { return x.sum().item<float>() > 0 ? x : x * 2; },
          "depends on the data");
  refuses([](at::Tensor const& x) { return x / x.abs().max().item<float>(); },
          "depends on the data");
  refuses([](at::Tensor const& x) { return x + torch::rand_like(x); }, "depends on the data");
  // Without a number that the tracer sees.
  refuses(
      [](at::Tensor const& x) {
        bool const positive = *x.contiguous().const_data_ptr<float>() > 0;
        return positive ? x : x * 2;
      },
      "depends on the data");
}

TEST_CASE("a module that computes with the size of its batch is refused unless that is meant") {
  auto const shape = [](at::Tensor const& x) { return x.view({x.size(0) * 2, -1}).sum(1); };
  refuses(shape, "another size");
  // Also if the outputs are small.
  refuses([](at::Tensor const& x) { return x * 1e-6 / x.size(0); }, "another size");
  Of module(shape);
  at::Tensor const x = torch::rand({3, 4});
  auto exported = export_torchscript(module, x, {.dynamic_batch = false});
  CHECK(at::allclose(output(exported, {x}), module.forward(x), 1e-5, 1e-6));
}

}  // namespace frugal_test::model_export_torchscript
