// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>
#include <torch/nn/init.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>

#include <frugal/model/lora.hpp>
#include <frugal/model/lora/merge.hpp>
#include <frugal/model/lora/peft.hpp>

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <map>
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

TEST_CASE("an adapter's file is refused where the module's type ends before its numbers") {
  TemporaryFolder const folder;
  torch::nn::Sequential net = network();
  adapt(net, Lora<Rank<2>, On<"0">, AlsoTrain<"2.*">>{});
  at::NoGradGuard const no_gradients;
  net->named_parameters()["2.bias"].fill_(1e6);
  save_adapter(net, folder.path());
  torch::nn::Sequential half = network();
  half->to(at::kHalf);
  CHECK_THROWS_WITH_AS(load_adapter(half, folder.path()), doctest::Contains("'2.bias' has 1000000"),
                       StateError);
  CHECK(frugal::detail::find_adapters(*half).empty());
  CHECK(half->named_parameters()["2.bias"].isfinite().all().item<bool>());
  torch::nn::Sequential wide = network();
  wide->to(at::kBFloat16);
  load_adapter(wide, folder.path());
  CHECK(wide->named_parameters()["2.bias"][0].item<float>() == doctest::Approx(1e6).epsilon(0.01));
}

TEST_CASE("an adapter that is there has its own type, which must have the file's numbers") {
  TemporaryFolder const folder;
  torch::nn::Sequential net = network();
  adapt(net, Lora<Rank<2>, On<"0">>{});
  at::NoGradGuard const no_gradients;
  frugal::detail::find_adapters(*net).front().adapter->a().fill_(1e5);
  save_adapter(net, folder.path());
  torch::nn::Sequential half = network();
  adapt(half, Lora<Rank<2>, On<"0">>{});
  half->to(at::kHalf);
  CHECK_THROWS_WITH_AS(load_adapter(half, folder.path()), doctest::Contains("has 100000"),
                       StateError);
}

TEST_CASE("a rank that the matrices have not is found before matrices of that rank are made") {
  TemporaryFolder const folder;
  torch::nn::Sequential net = network();
  adapt(net, Lora<Rank<2>, On<"0">>{});
  save_adapter(net, folder.path());
  std::string text = text_of(folder.path() / "adapter_config.json");
  std::size_t const at = text.find("\"r\": 2");
  REQUIRE(at != std::string::npos);
  text.replace(at, 6, "\"r\": 200000000000");
  std::ofstream(folder.path() / "adapter_config.json") << text;
  torch::nn::Sequential other = network();
  CHECK_THROWS_WITH_AS(load_adapter(other, folder.path()),
                       doctest::Contains("and the rank is 200000000000"), StateError);
}

TEST_CASE("a head that includes a merged adapter is neither written nor loaded over") {
  TemporaryFolder const folder;
  at::NoGradGuard const no_gradients;
  {
    torch::nn::Sequential net = network();
    adapt(net, Lora<Rank<2>, On<"2">, AlsoTrain<"0.*">, AdapterName<"b">>{});
    save_adapter(net, folder.path(), "b");
  }
  torch::nn::Sequential net = network();
  adapt(net, Lora<Rank<2>, On<"0">, AdapterName<"a">>{});
  torch::nn::init::ones_(frugal::detail::find_adapters(*net).front().adapter->b());
  merge(net, "a");
  at::Tensor const merged = net->named_parameters()["0.weight"].clone();
  CHECK_THROWS_WITH_AS(load_adapter(net, folder.path(), "b"),
                       doctest::Contains("'0' includes the merged adapter 'a'"), StateError);
  CHECK(at::equal(net->named_parameters()["0.weight"], merged));

  torch::nn::Sequential both = network();
  adapt(both, Lora<Rank<2>, On<"*">, AlsoTrain<"2.*">>{});
  merge(both);
  CHECK_THROWS_WITH_AS(save_adapter(both, folder.path()),
                       doctest::Contains("'2.weight' includes the merged adapter"), StateError);
  unmerge(both);
  save_adapter(both, folder.path());
}

TEST_CASE("an adapter's file is refused if it has numbers of another kind") {
  TemporaryFolder const folder;
  torch::nn::Sequential net = network();
  net[2]->register_buffer("steps", torch::full({1}, 0.5));
  adapt(net, Lora<Rank<2>, On<"0">, AlsoTrain<"2.*">>{});
  save_adapter(net, folder.path());
  torch::nn::Sequential other = network();
  other[2]->register_buffer("steps", torch::ones({1}, at::kLong));
  CHECK_THROWS_WITH_AS(load_adapter(other, folder.path()), doctest::Contains("'2.steps' is F32"),
                       StateError);
}

TEST_CASE("an adapter is not loaded beside one of its name in a layer that the file lacks") {
  TemporaryFolder const folder;
  torch::nn::Sequential net = network();
  adapt(net, Lora<Rank<2>, On<"0">>{});
  save_adapter(net, folder.path());
  torch::nn::Sequential other = network();
  adapt(other, Lora<Rank<2>, On<"0", "2">>{});
  at::Tensor const input = torch::randn({4, 6});
  for (auto const& each : frugal::detail::find_adapters(*other))
    torch::nn::init::ones_(each.adapter->b());
  at::Tensor const before = other->forward(input);
  CHECK_THROWS_WITH_AS(load_adapter(other, folder.path()),
                       doctest::Contains("'2' has an adapter 'default'"), SettingsError);
  CHECK(at::equal(other->forward(input), before));
}

/// A model whose head may be given the weight of its words.
struct WordsImpl : torch::nn::Module {
  torch::nn::Embedding words{register_module("words", torch::nn::Embedding(10, 6))};
  torch::nn::Linear query{register_module("query", torch::nn::Linear(6, 6))};
  torch::nn::Linear head{register_module("head", torch::nn::Linear(6, 10))};
};
TORCH_MODULE(Words);

TEST_CASE("a head that was given the weight of another layer is loaded, with one value") {
  TemporaryFolder const folder;
  at::NoGradGuard const no_gradients;
  Words apart;
  adapt(apart, Lora<Rank<2>, On<"query">, AlsoTrain<"head.*", "words.*">>{});
  apart->words->weight.fill_(3);
  apart->head->weight.fill_(4);
  save_adapter(apart, folder.path());
  auto const tied = [] {
    Words made;
    made->head->weight = made->words->weight;
    return made;
  };
  Words refusing = tied();
  CHECK_THROWS_WITH_AS(load_adapter(refusing, folder.path()), doctest::Contains("tied tensor"),
                       StateError);
  apart->words->weight.fill_(4);
  save_adapter(apart, folder.path());
  Words other = tied();
  load_adapter(other, folder.path());
  CHECK((other->head->weight == 4).all().item<bool>());
}

torch::nn::Sequential normalized() {
  torch::manual_seed(2);
  return torch::nn::Sequential(std::initializer_list<torch::nn::NamedAnyModule>{
      {"first", torch::nn::Linear(6, 8)},
      {"head_norm", torch::nn::BatchNorm1d(8)},
      {"head", torch::nn::Linear(8, 3)},
      {"head_last", torch::nn::BatchNorm1d(torch::nn::BatchNormOptions(3).affine(false))},
  });
}

TEST_CASE("the statistics of normalization layers that AlsoTrain trains are in the file") {
  TemporaryFolder const folder;
  torch::nn::Sequential net = normalized();
  adapt(net, Lora<Rank<2>, On<"first">, AlsoTrain<"head_*">>{});
  net->forward(torch::randn({16, 6}));
  save_adapter(net, folder.path());
  Safetensors const file = Safetensors::open(folder / "adapter_model.safetensors");
  for (char const* each :
       {"head_norm.weight", "head_norm.bias", "head_norm.running_mean", "head_norm.running_var",
        "head_norm.num_batches_tracked", "head_last.running_mean"}) {
    CAPTURE(each);
    CHECK(file.find(std::string("base_model.model.") + each).has_value());
  }
  CHECK_FALSE(file.find("base_model.model.head.weight").has_value());
  torch::nn::Sequential other = normalized();
  load_adapter(other, folder.path());
  net->eval();
  other->eval();
  at::Tensor const input = torch::randn({4, 6});
  CHECK(at::equal(other->forward(input), net->forward(input)));
}

/// What the error about a config with one more key says; empty if it loads.
std::string error_of(std::filesystem::path const& folder, std::string const& key,
                     std::string const& value) {
  torch::nn::Sequential net = network();
  adapt(net, Lora<Rank<2>, On<"0">>{});
  save_adapter(net, folder);
  std::string config = frugal::detail::read_whole_file(folder / "adapter_config.json");
  std::size_t const begins = config.find("\"" + key + "\":");
  if (begins != std::string::npos) config.erase(begins, config.find('\n', begins) - begins);
  config.insert(config.find('{') + 1, "\"" + key + "\": " + value + ",");
  frugal::detail::write_whole_file(folder / "adapter_config.json", config,
                                   frugal::detail::Durable::no);
  torch::nn::Sequential other = network();
  try {
    load_adapter(other, folder);
  } catch (FormatError const& error) {
    CHECK(frugal::detail::find_adapters(*other).empty());
    return error.what();
  }
  return {};
}

TEST_CASE("what a config says is known to be harmless, or refused by name") {
  TemporaryFolder const folder;
  auto const error = [&](char const* key, char const* value) {
    return error_of(folder.path(), key, value);
  };
  // Off, of no effect, or of the layers that the tensors name anyhow.
  for (auto const& [key, value] :
       std::map<std::string, std::string>{{"alora_invocation_tokens", "null"},
                                          {"arrow_config", "null"},
                                          {"init_lora_weights", "\"gaussian\""},
                                          {"layers_to_transform", "[0]"},
                                          {"loftq_config", "{}"},
                                          {"lora_bias", "false"},
                                          {"peft_version", "\"0.21.2\""},
                                          {"option_of_tomorrow", "null"},
                                          {"qalora_group_size", "16"},
                                          {"rank_pattern", "{}"},
                                          {"revision", "\"main\""},
                                          {"use_rslora", "false"}}) {
    CAPTURE(key);
    CHECK(error(key.c_str(), value.c_str()) == "");
  }
  for (auto const& [key, value] :
       std::map<std::string, std::string>{{"alora_invocation_tokens", "[]"},
                                          {"alpha_pattern", "{\"0\": 4}"},
                                          {"arrow_config", "{\"top_k\": 3}"},
                                          {"bias", "\"all\""},
                                          {"ensure_weight_tying", "true"},
                                          {"fan_in_fan_out", "true"},
                                          {"init_lora_weights", "\"pissa_niter_4\""},
                                          {"layer_replication", "[[0, 1]]"},
                                          {"option_of_tomorrow", "false"},
                                          {"use_bdlora", "{\"nblocks\": 2}"},
                                          {"use_dora", "\"yes\""}}) {
    CAPTURE(key);
    std::string const text = error(key.c_str(), value.c_str());
    CHECK(text.find(key) != std::string::npos);
    CHECK(text.find("adapter_config.json") != std::string::npos);
  }
  CHECK(error("init_lora_weights", "\"pissa_niter_4\"").find("random") != std::string::npos);
  CHECK(error("init_lora_weights", "\"olora\"").find("changes the base") != std::string::npos);
}

}  // namespace frugal_test::model_lora_peft
