// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/normalization.h>

#include <frugal/base/json.hpp>
#include <frugal/model/load_weights.hpp>
#include <frugal/model/quantize.hpp>
#include <frugal/model/save_weights.hpp>

#include "support/checkpoints.hpp"
#include "support/files.hpp"
#include "support/weight_files.hpp"

#include <cmath>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <set>
#include <string>

namespace frugal_test::model_save_weights {

using frugal::load_weights;
using frugal::save_weights;
using frugal::SavedWeights;
using namespace support;

/// Six matrices of 400 bytes, and a buffer of integers.
struct Net : torch::nn::Module {
  Net() {
    for (int i = 0; i < 6; ++i) {
      std::string const name = std::to_string(i);
      register_parameter("w" + name, at::arange(100, at::kFloat).view({10, 10}) / 3 + i);
    }
    register_buffer("positions", at::arange(5));
  }
};

std::set<std::string> files_in(std::filesystem::path const& folder) {
  std::set<std::string> names;
  for (auto const& each : std::filesystem::directory_iterator(folder)) {
    names.insert(each.path().filename().string());
  }
  return names;
}

Tensors loaded_from(std::filesystem::path const& folder) {
  Net net;
  {
    at::NoGradGuard const no_gradients;
    for (at::Tensor& each : net.parameters()) each.zero_();
    for (at::Tensor& each : net.buffers()) each.zero_();
  }
  CHECK(load_weights(net, folder).complete());
  return copies_of(net);
}

TEST_CASE("a module that fits into one file has no index") {
  TemporaryFolder const folder;
  Net net;
  SavedWeights const saved = save_weights(net, folder / "a/model");
  CHECK(saved.index.empty());
  CHECK(saved.total_size == 6 * 400 + 40);
  CHECK(files_in(folder / "a/model") == std::set<std::string>{"model.safetensors"});
  CHECK(equal(loaded_from(folder / "a/model"), copies_of(net)));
}

TEST_CASE("a larger one has shards, and an index with their sizes and names") {
  TemporaryFolder const folder;
  Net net;
  SavedWeights const saved = save_weights(net, folder.path(), {.shard_bytes = 1000});
  CHECK(saved.files.size() == 3);  // two matrices each, and the buffer
  CHECK(saved.total_size == 6 * 400 + 40);
  CHECK(files_in(folder.path()) == std::set<std::string>{"model-00001-of-00003.safetensors",
                                                         "model-00002-of-00003.safetensors",
                                                         "model-00003-of-00003.safetensors",
                                                         "model.safetensors.index.json"});
  auto const index = frugal::detail::Json::parse(text_of(saved.index));
  REQUIRE(index);
  CHECK(index->find("metadata")->find("total_size")->as_unsigned() == 6 * 400 + 40);
  auto const* const map = index->find("weight_map");
  CHECK(map->items().size() == 7);
  CHECK(map->find("w1")->text() == "model-00001-of-00003.safetensors");
  CHECK(map->find("w2")->text() == "model-00002-of-00003.safetensors");
  CHECK(map->find("positions")->text() == "model-00003-of-00003.safetensors");
  CHECK(equal(loaded_from(folder.path()), copies_of(net)));
  auto const first = frugal::Safetensors::open(saved.files[0]);
  CHECK(first.metadata("format") == "pt");
  // A tensor that is larger than a shard has one of its own.
  CHECK(save_weights(net, folder / "small", {.shard_bytes = 10}).files.size() == 7);
}

TEST_CASE("weights that the folder has are replaced, and other files stay") {
  TemporaryFolder const folder;
  Net net;
  write_text(folder / "config.json", "{}");
  for (std::uint64_t const bytes : {1000U, 10U, 100000U, 1000U, 100000U}) {
    CAPTURE(bytes);
    {
      at::NoGradGuard const no_gradients;
      for (at::Tensor& each : net.parameters()) each.add_(1);
    }
    SavedWeights const saved = save_weights(net, folder.path(), {.shard_bytes = bytes});
    CHECK(files_in(folder.path()).size() == saved.files.size() + (saved.index.empty() ? 1 : 2));
    CHECK(equal(loaded_from(folder.path()), copies_of(net)));
  }
  CHECK(text_of(folder / "config.json") == "{}");
}

TEST_CASE("a save that fails leaves the weights that the folder had") {
  TemporaryFolder const folder;
  Net net;
  save_weights(net, folder.path(), {.shard_bytes = 1000});
  Tensors const before = copies_of(net);
  auto const files = files_in(folder.path());
  net.register_buffer("complex", at::ones({2}, at::kComplexDouble));
  CHECK_THROWS_WITH_AS(save_weights(net, folder.path(), {.shard_bytes = 1000}),
                       doctest::Contains("the tensor 'complex' cannot be stored"),
                       frugal::FormatError);
  CHECK(files_in(folder.path()) == files);
  CHECK(equal(loaded_from(folder.path()), before));
}

TEST_CASE("floating-point tensors are rounded if asked for, and parts are saved alone") {
  TemporaryFolder const folder;
  Net net;
  SavedWeights const saved = save_weights(net, folder / "half", {.type = at::kBFloat16});
  CHECK(saved.total_size == 6 * 200 + 40);
  Tensors expected = copies_of(net);
  for (auto& [name, tensor] : expected) {
    if (tensor.is_floating_point()) tensor = tensor.to(at::kBFloat16).to(at::kFloat);
  }
  CHECK(equal(loaded_from(folder / "half"), expected));
  CHECK_THROWS_AS(save_weights(net, folder / "int", {.type = at::kInt}), frugal::SettingsError);

  save_weights(net, folder / "part", {.parts = {"w0", "w1"}});
  CHECK(frugal::Safetensors::open(folder / "part/model.safetensors").size() == 2);
  CHECK_THROWS_WITH_AS(save_weights(net, folder / "part", {.parts = {"x*"}}),
                       doctest::Contains("the pattern 'x*' matches nothing (SaveRules::parts)"),
                       frugal::SettingsError);
}

TEST_CASE("tied tensors are there under each name, and tensors with gaps are written without") {
  TemporaryFolder const folder;
  torch::nn::Module net;
  at::Tensor const weight = net.register_parameter("a", at::arange(6, at::kFloat).view({2, 3}).t());
  net.register_parameter("b", weight);
  save_weights(net, folder.path());
  auto const file = frugal::Safetensors::open(folder / "model.safetensors");
  REQUIRE(file.size() == 2);
  for (char const* const name : {"a", "b"}) {
    CHECK(frugal::detail::tensor_in_file(file.at(name)).equal(weight));
  }
}

TEST_CASE("a weight that was assigned to a layer is saved under the names of both") {
  TemporaryFolder const folder;
  torch::nn::Sequential net(torch::nn::Linear(3, 3), torch::nn::Linear(3, 3));
  net[1]->as<torch::nn::Linear>()->weight = net[0]->as<torch::nn::Linear>()->weight;
  save_weights(net, folder.path());
  auto const file = frugal::Safetensors::open(folder / "model.safetensors");
  at::Tensor const first = frugal::detail::tensor_in_file(file.at("0.weight"));
  CHECK(first.equal(net[0]->as<torch::nn::Linear>()->weight));
  CHECK(frugal::detail::tensor_in_file(file.at("1.weight")).equal(first));
  // One value there, in another layer than the first: it is the one that both compute with.
  torch::nn::Sequential other(torch::nn::Linear(3, 3), torch::nn::Linear(3, 3));
  other[1]->as<torch::nn::Linear>()->weight = other[0]->as<torch::nn::Linear>()->weight;
  CHECK(load_weights(other, folder.path()).complete());
  CHECK(other[1]->as<torch::nn::Linear>()->weight.equal(first));
}

TEST_CASE("a weight beyond the type of the files is refused, and not made infinite") {
  TemporaryFolder const folder;
  Net net;
  save_weights(net, folder.path());
  Tensors const before = copies_of(net);
  at::NoGradGuard const no_gradients;
  net.named_parameters()["w3"][0][0] = -70000;
  CHECK_THROWS_WITH_AS(save_weights(net, folder.path(), {.type = at::kHalf}),
                       doctest::Contains("'w3' has 70000"), frugal::WeightRangeError);
  CHECK(files_in(folder.path()) == std::set<std::string>{"model.safetensors"});
  CHECK(equal(loaded_from(folder.path()), before));
  save_weights(net, folder.path(), {.type = at::kBFloat16});
  // What is infinite stays so.
  net.named_parameters()["w3"][0][0] = std::numeric_limits<float>::infinity();
  save_weights(net, folder.path(), {.type = at::kHalf});
  CHECK(std::isinf(loaded_from(folder.path()).at("w3")[0][0].item<float>()));
}

TEST_CASE("the scales of quantized layers keep their type when weights are rounded") {
  TemporaryFolder const folder;
  torch::manual_seed(2);
  torch::nn::Sequential net(torch::nn::Linear(64, 64),
                            torch::nn::LayerNorm(torch::nn::LayerNormOptions({64})));
  frugal::quantize<frugal::INT8>(net);
  at::NoGradGuard const no_gradients;
  // A weight of small numbers, of which FP16 would have a few bits of each scale.
  net->named_buffers()["0.quantized.scales"].mul_(1e-6);
  save_weights(net, folder.path(), {.type = at::kHalf});
  auto const file = frugal::Safetensors::open(folder / "model.safetensors");
  CHECK(frugal::detail::tensor_in_file(file.at("0.quantized.scales"))
            .equal(net->named_buffers()["0.quantized.scales"]));
  CHECK((file.at("1.weight").dtype == frugal::Dtype::f16));
}

}  // namespace frugal_test::model_save_weights
