// SPDX-License-Identifier: Apache-2.0
// Writes what tests/interop/torchscript.py loads: for each module NAME of the examples' kinds
// NAME.pt, and NAME.safetensors with inputs, outputs and the state dict, as C++ has them.
#include <frugal/base/file.hpp>
#include <frugal/checkpoint/safetensors_writer.hpp>
#include <frugal/core/libtorch/interception.hpp>
#include <frugal/core/libtorch/modes.hpp>
#include <frugal/data/tensor_dtype.hpp>
#include <frugal/model/export_torchscript.hpp>

#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/dropout.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/normalization.h>
#include <torch/nn/modules/pooling.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <iostream>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace {

using Tensors = std::map<std::string, at::Tensor>;

void write(std::filesystem::path const& path, Tensors const& tensors) {
  std::list<at::Tensor> whole;
  std::list<std::vector<std::uint64_t>> shapes;
  std::vector<frugal::TensorView> views;
  for (auto const& [name, tensor] : tensors) {
    at::Tensor const& each = whole.emplace_back(tensor.detach().contiguous());
    auto const& shape = shapes.emplace_back(each.sizes().begin(), each.sizes().end());
    views.push_back(
        {.name = name,
         .dtype = *frugal::detail::stored_type(each.scalar_type()),
         .shape = shape,
         .bytes = {static_cast<std::byte const*>(each.const_data_ptr()), each.nbytes()}});
  }
  frugal::SafetensorsWriter const writer(std::move(views), {}, path.string());
  auto file = frugal::File::create(path);
  writer.write(file);
  file.close();
}

/// Inputs are of three batches: of the example's size, of one, of many.
template <class Module>
void save(std::filesystem::path const& folder, std::string const& name, Module& module,
          std::vector<at::Tensor> const& inputs) {
  frugal::export_torchscript(module, inputs[0]).save((folder / (name + ".pt")).string());
  torch::nn::Module& root = frugal::base_module(module);
  frugal::detail::EvaluationMode const mode(root);
  at::NoGradGuard const no_gradients;
  Tensors all;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    all.emplace("input" + std::to_string(i), inputs[i]);
    all.emplace("output" + std::to_string(i), frugal::forward(module, inputs[i]));
  }
  for (auto const& item : root.named_parameters()) all.emplace("state." + item.key(), item.value());
  for (auto const& item : root.named_buffers()) all.emplace("state." + item.key(), item.value());
  write(folder / (name + ".safetensors"), all);
}

torch::nn::Sequential mlp() {
  return torch::nn::Sequential(torch::nn::Linear(784, 32), torch::nn::ReLU(),
                               torch::nn::Dropout(0.2), torch::nn::Linear(32, 10));
}

torch::nn::Sequential convolutions() {
  torch::nn::Sequential net(torch::nn::Conv2d(1, 4, 3), torch::nn::BatchNorm2d(4),
                            torch::nn::ReLU(), torch::nn::MaxPool2d(2), torch::nn::Flatten(),
                            torch::nn::Linear(4 * 13 * 13, 10));
  net->forward(torch::rand({8, 1, 28, 28}));  // statistics
  return net;
}

/// A block of a transformer that keeps the batch out of its shapes.
struct Block : torch::nn::Module {
  Block() {
    register_module("embed", embed);
    register_module("qkv", qkv);
    register_module("norm", norm);
    register_module("out", out);
  }
  at::Tensor forward(at::Tensor const& ids) {
    at::Tensor const x = norm->forward(embed->forward(ids));  // [B, T, 16]
    auto const parts = qkv->forward(x).chunk(3, -1);
    at::Tensor const scores = parts[0].matmul(parts[1].transpose(1, 2)) / 4.0;
    return out->forward((x + scores.softmax(-1).matmul(parts[2])).mean(1));
  }
  torch::nn::Embedding embed{50, 16};
  torch::nn::Linear qkv{16, 48};
  torch::nn::LayerNorm norm{torch::nn::LayerNormOptions({16})};
  torch::nn::Linear out{16, 5};
};

struct LowRank final : frugal::LayerHook {
  explicit LowRank(torch::nn::Module& adapter)
      : down(adapter.register_parameter("down", torch::rand({2, 784}) / 20)),
        up(adapter.register_parameter("up", torch::rand({32, 2}))) {}
  Place place() const override { return Place::adapt; }
  at::Tensor call(frugal::LayerCall const& call, frugal::LayerRest const& rest) override {
    return rest(call) + call.input.matmul(down.t()).matmul(up.t());
  }
  at::Tensor down, up;
};

void make(std::filesystem::path const& folder) {
  torch::manual_seed(7);
  auto const batches = [](std::vector<std::int64_t> const& sample) {
    std::vector<at::Tensor> all;
    for (std::int64_t const size : {4, 1, 33}) {
      std::vector<std::int64_t> sizes{size};
      sizes.insert(sizes.end(), sample.begin(), sample.end());
      all.push_back(torch::rand(sizes));
    }
    return all;
  };
  auto plain = mlp();
  save(folder, "mlp", plain, batches({784}));
  auto images = convolutions();
  save(folder, "convolutions", images, batches({1, 28, 28}));
  Block block;
  save(folder, "block", block,
       {torch::randint(50, {4, 6}), torch::randint(50, {1, 6}), torch::randint(50, {33, 6})});

  auto adapted = mlp();
  auto adapter = std::make_shared<torch::nn::Module>("lora");
  auto* const layer = (*adapted)[0]->as<torch::nn::Linear>();
  frugal::intercept(layer->weight, std::make_shared<LowRank>(*adapter));
  layer->register_module("lora", adapter);
  save(folder, "adapted", adapted, batches({784}));
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 2) {
    std::cerr << "interop_torchscript FOLDER\n";
    return 2;
  }
  try {
    make(arguments[1]);
  } catch (std::exception const& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
  return 0;
}
