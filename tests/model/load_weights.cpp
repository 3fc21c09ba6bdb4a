// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <frugal/base/file.hpp>
#include <frugal/core/libtorch/fixed_tensors.hpp>
#include <frugal/model/load_weights.hpp>

#include "support/checkpoints.hpp"
#include "support/files.hpp"
#include "support/torch_files.hpp"
#include "support/weight_files.hpp"

#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>

#include <cmath>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace frugal_test::model_load_weights {

using frugal::load_weights;
using frugal::LoadedWeights;
using frugal::StateError;
using frugal::WeightRules;
using namespace support;
using Names = std::vector<std::string>;

/// An embedding, two layers and a head; the tensors' numbers are all different.
struct Net : torch::nn::Module {
  explicit Net(std::int64_t tokens = 5, std::int64_t classes = 2)
      : embedding(register_module("embedding", torch::nn::Embedding(tokens, 3))),
        head(register_module("head", torch::nn::Linear(3, classes))) {
    for (int i = 0; i < 2; ++i) {
      layers.push_back(register_module("layer" + std::to_string(i), torch::nn::Linear(3, 3)));
    }
    register_buffer("positions", at::arange(4));
    at::NoGradGuard const no_gradients;
    float next = 0;
    for (at::Tensor& each : parameters())
      each.copy_(at::arange(each.numel()).view_as(each) + (next += 100));
  }
  torch::nn::Embedding embedding;
  torch::nn::Linear head;
  std::vector<torch::nn::Linear> layers;
};

Tensors negated(Tensors tensors) {
  for (auto& [name, tensor] : tensors) tensor = -tensor;
  return tensors;
}

/// Refused, and the module does not change.
void refuses(torch::nn::Module& module, std::filesystem::path const& path, WeightRules const& rules,
             std::vector<std::string> const& reasons) {
  Tensors const before = copies_of(module);
  std::string error;
  try {
    load_weights(module, path, rules);
  } catch (StateError const& caught) {
    error = caught.what();
  }
  CAPTURE(error);
  for (std::string const& reason : reasons) {
    CAPTURE(reason);
    CHECK(error.find(reason) != std::string::npos);
  }
  CHECK(equal(copies_of(module), before));
}

TEST_CASE(
    "every name that is missing, unexpected or misshapen is listed, unless a pattern allows it") {
  TemporaryFolder const folder;
  Net donor(5, 7), net;
  Tensors file = negated(copies_of(donor));
  file.erase("layer1.bias");
  file["pooler.weight"] = at::ones({1});
  file["pooler.bias"] = at::ones({1});
  auto const path = folder / "w.safetensors";
  write_safetensors(path, file);
  refuses(net, path, {},
          {"missing there: 'layer1.bias'; unexpected there: 'pooler.bias', 'pooler.weight'; "
           "misshapen: ",
           "'head.weight' is F32 [7, 3] there and F32 [2, 3] here",
           "'head.bias' is F32 [7] there and F32 [2] here"});
  refuses(net, path, {.allow_missing = {"layer1.*"}, .allow_unexpected = {"pooler.bias"}},
          {"(" + path.string() + "): unexpected there: 'pooler.weight'; misshapen: "});
  Tensors const before = copies_of(net);
  LoadedWeights const loaded = load_weights(net, path,
                                            {.allow_missing = {"layer1.*"},
                                             .allow_unexpected = {"pooler.*"},
                                             .allow_misshapen = {"head.*"}});
  CHECK(loaded.matched ==
        Names{"embedding.weight", "layer0.weight", "layer0.bias", "layer1.weight", "positions"});
  CHECK(loaded.missing == Names{"layer1.bias"});
  CHECK(loaded.unexpected == Names{"pooler.bias", "pooler.weight"});
  CHECK(loaded.misshapen == Names{"head.weight", "head.bias"});
  CHECK_FALSE(loaded.complete());
  CHECK(loaded.file == path);
  for (auto const& [name, tensor] : copies_of(net)) {
    CAPTURE(name);
    bool const kept = name == "layer1.bias" || name.starts_with("head.");
    CHECK(tensor.equal(kept ? before.at(name) : -before.at(name)));
  }
}

TEST_CASE("a file that has nothing of the module is refused, whatever is allowed") {
  TemporaryFolder const folder;
  Net net;
  write_safetensors(folder / "w", {{"x", at::ones({1})}});
  refuses(net, folder / "w", {.allow_missing = {"*"}, .allow_unexpected = {"*"}},
          {"no tensor there has the name of a tensor here"});
}

TEST_CASE("of many names the first are listed, and the number of the others") {
  TemporaryFolder const folder;
  Net net;
  Tensors file = copies_of(net);
  for (int i = 0; i < 60; ++i) file["x" + std::to_string(i)] = at::ones({1});
  write_safetensors(folder / "w", file);
  refuses(net, folder / "w", {}, {"and 10 more"});
}

TEST_CASE("names are mapped by patterns, and a prefix of the file is left out") {
  TemporaryFolder const folder;
  Net net;
  Tensors file;
  for (auto const& [name, tensor] : negated(copies_of(net))) {
    // The head has no prefix, as in a model for classification.
    std::string there = name.starts_with("head") ? name : "bert." + name;
    if (auto const at = there.find("layer"); at != std::string::npos) there.insert(at + 5, ".");
    file[there] = tensor;
  }
  write_safetensors(folder / "w", file);
  WeightRules const rules{.rename = {{"layer.*.*", "layer*.*"}}, .prefix = "bert."};
  CHECK(load_weights(net, folder / "w", rules).complete());
  CHECK(equal(copies_of(net), negated(copies_of(*std::make_shared<Net>()))));
  refuses(net, folder / "w", {.prefix = "bert."},
          {"missing there: 'layer0.weight'", "unexpected there: 'bert.layer.0.bias'"});
  // A rule for a layer that the file lacks does not fall back to another one.
  refuses(net, folder / "w",
          {.rename = {{"layer.9.*", "layer1.*"}, {"layer.*.*", "layer*.*"}}, .prefix = "bert."},
          {"missing there: 'layer1.weight' ('layer.9.weight' there)"});
}

TEST_CASE("a layer is taken from another place, and one layer may go to several") {
  TemporaryFolder const folder;
  Net net;
  Tensors file = copies_of(net);
  for (int i = 2; i < 6; ++i) {
    file["layer" + std::to_string(i) + ".weight"] = at::full({3, 3}, static_cast<float>(i));
    file["layer" + std::to_string(i) + ".bias"] = at::full({3}, static_cast<float>(i));
  }
  write_safetensors(folder / "teacher", file);
  load_weights(net, folder / "teacher",
               {.rename = {{"layer5.*", "layer1.*"}, {"layer5.*", "layer0.*"}},
                .allow_unexpected = {"layer*"}});
  for (auto const& layer : net.layers) {
    CHECK(layer->weight.equal(at::full({3, 3}, 5.0F)));
    CHECK(layer->bias.equal(at::full({3}, 5.0F)));
  }
}

TEST_CASE("parts of a module are loaded, and a part of a file into a part of a module") {
  TemporaryFolder const folder;
  Net net;
  Tensors const before = copies_of(net);
  write_safetensors(folder / "w", negated(before));
  LoadedWeights const loaded = load_weights(net, folder / "w", {.parts = {"layer*", "positions"}});
  CHECK(loaded.complete());
  CHECK(loaded.matched.size() == 5);
  for (auto const& [name, tensor] : copies_of(net)) {
    CAPTURE(name);
    bool const kept = name.starts_with("head.") || name.starts_with("embedding.");
    CHECK(tensor.equal(kept ? before.at(name) : -before.at(name)));
  }
  torch::nn::Linear head(3, 2);
  CHECK(
      load_weights(head, folder / "w",
                   {.prefix = "head.", .allow_unexpected = {"layer*", "embedding.*", "positions"}})
          .matched == Names{"weight", "bias"});
  CHECK(head->weight.equal(-before.at("head.weight")));
}

TEST_CASE("matrices that the file has transposed are named, because squares do not show it") {
  TemporaryFolder const folder;
  Net net;
  Tensors file = copies_of(net);
  for (char const* const name : {"layer0.weight", "head.weight"}) {
    file[name] = file[name].t().contiguous();
  }
  write_safetensors(folder / "w", file);
  WeightRules const rules{.transpose = {"layer0.weight", "head.weight"}};
  Tensors const before = copies_of(net);
  {
    at::NoGradGuard const no_gradients;
    for (at::Tensor& each : net.parameters()) each.zero_();
  }
  load_weights(net, folder / "w", rules);
  CHECK(equal(copies_of(net), before));
  refuses(net, folder / "w", {}, {"'head.weight' is F32 [3, 2] there and F32 [2, 3] here"});
  refuses(net, folder / "w", {.transpose = {"head.*", "layer0.weight"}},
          {"'head.bias' is F32 [2] there, transposed, and F32 [2] here, and only matrices"});
}

TEST_CASE(
    "of an embedding with more rows the new ones are the mean of the known, and fewer are cut") {
  TemporaryFolder const folder;
  Net donor(5), more(8), fewer(3);
  auto const path = folder / "w";
  write_safetensors(path, copies_of(donor));
  WeightRules const rules{.resize = {"embedding.weight"}};
  LoadedWeights const loaded = load_weights(more, path, rules);
  CHECK(loaded.resized == Names{"embedding.weight"});
  CHECK(loaded.complete());
  at::Tensor const known = donor.embedding->weight;
  CHECK(more.embedding->weight.narrow(0, 0, 5).equal(known));
  CHECK(more.embedding->weight.narrow(0, 5, 3).equal(known.mean(0).expand({3, 3})));
  load_weights(fewer, path, rules);
  CHECK(fewer.embedding->weight.equal(known.narrow(0, 0, 3)));
  Net same(5);
  CHECK(load_weights(same, path, rules).resized.empty());
  // Only the number of rows may differ.
  refuses(more, path, {}, {"'embedding.weight' is F32 [5, 3] there and F32 [8, 3] here"});
  Tensors wide = copies_of(donor);
  wide["embedding.weight"] = at::ones({5, 4});
  write_safetensors(path, wide);
  refuses(more, path, rules, {"'embedding.weight' is F32 [5, 4] there"});
}

TEST_CASE("the mean of many rows is that of all, in a type of few digits as well") {
  TemporaryFolder const folder;
  torch::nn::Embedding embedding(9001, 2);
  at::Tensor const known = (at::arange(18000) % 64).view({9000, 2}).to(at::kBFloat16);
  write_safetensors(folder / "w", {{"weight", known}});
  load_weights(embedding, folder / "w", {.resize = {"weight"}});
  at::Tensor const mean = known.to(at::kDouble).mean(0).to(at::kFloat);
  CHECK(embedding->weight[9000].equal(mean));
}

TEST_CASE("floating-point types are rounded to each other, and integers become wider") {
  TemporaryFolder const folder;
  Net net;
  for (auto const type : {at::kHalf, at::kBFloat16, at::kDouble}) {
    Tensors file = copies_of(net);
    Tensors expected = file;
    for (auto& [name, tensor] : file) {
      if (!tensor.is_floating_point()) continue;
      tensor = (tensor / 3).to(type);
      expected[name] = tensor.to(at::kFloat);
    }
    file["positions"] = (file["positions"] + 1).to(at::kInt);
    expected["positions"] = expected["positions"] + 1;
    write_safetensors(folder / "w", file);
    load_weights(net, folder / "w");
    CHECK(equal(copies_of(net), expected));
  }
}

TEST_CASE("numbers that the module's type does not have are refused, not made infinite") {
  TemporaryFolder const folder;
  torch::nn::Linear half(2, 2);
  half->to(at::kHalf);
  Tensors file{{"weight", at::full({2, 2}, 65504.0F)}, {"bias", at::full({2}, -1.0F)}};
  write_safetensors(folder / "w", file);
  load_weights(half, folder / "w");
  CHECK(half->weight.equal(at::full({2, 2}, 65504.0F).to(at::kHalf)));
  file["bias"][1] = -70000.0F;
  write_safetensors(folder / "w", file);
  refuses(*half, folder / "w", {},
          {"a weight is too large for the module's type", "'bias' has 70000"});
  // What is infinite in the file stays so.
  file["bias"][1] = -std::numeric_limits<float>::infinity();
  write_safetensors(folder / "w", file);
  load_weights(half, folder / "w");
  CHECK(std::isinf(half->bias[1].item<float>()));
}

TEST_CASE("a type that cannot be converted without a loss is misshapen") {
  TemporaryFolder const folder;
  Net net;
  auto const with = [&](std::string const& name, at::Tensor const& tensor) {
    Tensors file = copies_of(net);
    file[name] = tensor;
    write_safetensors(folder / "w", file);
    return folder / "w";
  };
  refuses(net, with("head.bias", at::ones({2}, at::kLong)), {},
          {"'head.bias' is I64 [2] there and F32 [2] here, a type that is not converted"});
  refuses(net, with("positions", at::ones({4}, at::kFloat)), {}, {"'positions' is F32 [4] there"});
  refuses(net, with("positions", at::ones({4}, at::kBool)), {}, {"'positions' is BOOL [4] there"});
  net.named_buffers()["positions"].set_data(at::arange(4, at::kShort));
  refuses(net, with("positions", at::ones({4}, at::kLong)), {}, {"and I16 [4] here"});
}

/// The head has the weight of the embedding, as in language models.
struct Tied : torch::nn::Module {
  Tied() {
    at::Tensor const weight = register_parameter("embedding", at::zeros({3, 2}));
    register_parameter("head", weight);
    register_parameter("bias", at::zeros({3}));
  }
};

TEST_CASE("a tied tensor may be in the file under one name or all, with one value") {
  TemporaryFolder const folder;
  at::Tensor const weight = at::arange(6, at::kFloat).view({3, 2});
  std::vector<Tensors> const files{
      {{"embedding", weight}}, {{"head", weight}}, {{"embedding", weight}, {"head", weight}}};
  for (Tensors file : files) {
    Tied module;
    file["bias"] = at::ones({3});
    write_safetensors(folder / "w", file);
    LoadedWeights const loaded = load_weights(module, folder / "w");
    CHECK(loaded.matched == Names{"embedding", "head", "bias"});
    CHECK(module.named_parameters()["head"].equal(weight));
  }
  Tied module;
  write_safetensors(folder / "w", {{"bias", at::ones({3})}});
  refuses(module, folder / "w", {}, {"missing there: 'embedding', 'head'."});
  write_safetensors(folder / "w",
                    {{"embedding", weight}, {"head", weight + 1}, {"bias", at::ones({3})}});
  refuses(module, folder / "w", {},
          {"'embedding' and 'head' differ there and are one tied tensor here"});
  // A NaN is not equal to itself, and the same bits are.
  at::Tensor const nan = at::full({3, 2}, std::nanf(""));
  write_safetensors(folder / "w", {{"embedding", nan}, {"head", nan}, {"bias", at::ones({3})}});
  CHECK(load_weights(module, folder / "w").complete());
  // Two tensors of the module from one of the file.
  torch::nn::Linear one(2, 2);
  write_safetensors(folder / "w", {{"bias", at::ones({2})}, {"x", at::ones({2, 2})}});
  CHECK(load_weights(one, folder / "w", {.rename = {{"x", "weight"}}}).complete());
}

TEST_CASE("a file of torch.save is loaded like one of safetensors") {
  TemporaryFolder const folder;
  std::string const pickle = Pickle()
                                 .dict([](Pickle& to) {
                                   to.text("weight").tensor("0", "Float", 6, 0, {2, 3}, {1, 2});
                                   to.text("bias").tensor("1", "Half", 2, 0, {2}, {1});
                                 })
                                 .done();
  at::Tensor const bias = at::tensor({0.5F, -2.0F}).to(at::kHalf);
  std::string const halves(static_cast<char const*>(bias.const_data_ptr()), bias.nbytes());
  write_torch_file(folder / "w.pt", pickle,
                   {{"0", bytes_of_floats({0, 1, 2, 3, 4, 5})}, {"1", halves}});
  torch::nn::Linear net(3, 2);
  CHECK(load_weights(net, folder / "w.pt").complete());
  CHECK(net->weight.equal(at::tensor({0.0F, 2.0F, 4.0F, 1.0F, 3.0F, 5.0F}).view({2, 3})));
  CHECK(net->bias.equal(bias.to(at::kFloat)));
}

TEST_CASE("the checkpoint of a run over a fixed base has the rest, and only over that base") {
  TemporaryFolder const folder;
  Net net, other;
  frugal::fix_tensor(net.embedding->weight);
  Tensors rest = negated(copies_of(net));
  rest.erase("embedding.weight");
  std::vector<frugal::TensorView> views;
  for (auto const& [name, tensor] : rest)
    views.push_back(frugal::detail::stored_view(name, tensor));
  frugal::SafetensorsWriter const writer(
      std::move(views), {{frugal::detail::fixed_key, frugal::fixed_identity(net)}}, "w");
  auto file = frugal::File::create(folder / "w");
  writer.write(file);
  file.close();
  CHECK(load_weights(net, folder / "w").complete());
  CHECK(net.head->weight.equal(rest.at("head.weight")));
  CHECK(net.embedding->weight.equal(other.embedding->weight));
  // A module that does not fix the embedding lacks it.
  refuses(other, folder / "w", {}, {"missing there: 'embedding.weight'"});
  {
    at::NoGradGuard const no_gradients;
    other.embedding->weight.add_(1);
  }
  frugal::fix_tensor(other.embedding->weight);
  refuses(other, folder / "w", {}, {"these weights were trained over another base"});
}

/// The most memory of this process since the last call of forget_peak(), in bytes.
std::uint64_t peak() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    if (word != "VmHWM:") continue;
    std::uint64_t kilobytes = 0;
    status >> kilobytes;
    return kilobytes * 1024;
  }
  return 0;
}
void forget_peak() {
  std::ofstream file("/proc/self/clear_refs");
  file << 5;
  file.close();
  REQUIRE(file.good());
}

/// Sixteen matrices.
struct Large : torch::nn::Module {
  explicit Large(at::ScalarType type, std::int64_t side = 1024) {
    for (int i = 0; i < 16; ++i) {
      register_parameter("w" + std::to_string(i), at::ones({side, side}, type));
    }
  }
};

TEST_CASE("loading takes the memory of one tensor next to the module's") {
  TemporaryFolder const folder;
  constexpr std::uint64_t tensor = 4 << 20;
  std::uint64_t const all = 16 * tensor;
  {
    Large source(at::kFloat);
    at::NoGradGuard const no_gradients;
    for (at::Tensor& each : source.parameters()) each.normal_();
    write_safetensors(folder / "w", copies_of(source));
  }
  for (auto const type : {at::kFloat, at::kBFloat16, at::kHalf}) {
    Large net(type);
    forget_peak();
    std::uint64_t const before = peak();
    load_weights(net, folder / "w");
    CHECK(peak() - before < all / 4);
  }
  // The test sees what it looks for: the whole file in memory.
  forget_peak();
  std::uint64_t const before = peak();
  auto const weights = frugal::detail::open_weights(folder / "w", frugal::Weights::trained, "");
  for (auto const& each : weights.all()) static_cast<void>(each.tensor().sum());
  CHECK(peak() - before >= all / 2);
}

TEST_CASE("numbers of 8 bits, which need scales, are no weights of another type") {
  TemporaryFolder const folder;
  torch::nn::Linear net(2, 2);
  at::Tensor const eight = at::ones({2, 2}).to(at::kFloat8_e4m3fn);
  write_safetensors(folder / "w", {{"weight", eight}, {"bias", at::zeros({2})}});
  refuses(*net, folder / "w", {},
          {"'weight' is F8_E4M3 [2, 2] there and F32 [2, 2] here, a type that is not converted"});
  net->weight.set_data(at::zeros({2, 2}).to(at::kFloat8_e4m3fn));
  load_weights(net, folder / "w");
  CHECK(net->weight.to(at::kFloat).equal(at::ones({2, 2})));
}

TEST_CASE("a tied tensor that a file has in two types has one value if the numbers are equal") {
  TemporaryFolder const folder;
  Tied module;
  at::Tensor const weight = at::arange(6, at::kFloat).view({3, 2});
  Tensors file{{"embedding", weight}, {"head", weight.to(at::kHalf)}, {"bias", at::zeros({3})}};
  write_safetensors(folder / "w", file);
  CHECK(load_weights(module, folder / "w").complete());
  CHECK(module.parameters()[0].equal(weight));
  file["head"][0][0] = 2;
  write_safetensors(folder / "w", file);
  refuses(module, folder / "w", {}, {"differ there and are one tied tensor here"});
}

}  // namespace frugal_test::model_load_weights

namespace frugal_test::model_weight_files {

using frugal::Weights;
using frugal::detail::open_weights;
using frugal::detail::StoredWeights;
using namespace support;

StoredWeights open(std::filesystem::path const& path) {
  return open_weights(path, Weights::validated, "");
}

template <class Error>
void refuses(std::filesystem::path const& path, std::string const& why) {
  CAPTURE(why);
  CHECK_THROWS_WITH_AS(open(path), doctest::Contains(why.c_str()), Error);
}

at::Tensor const ones = at::ones({2});

/// A folder of two shards, with an index of this text.
void write_shards(std::filesystem::path const& folder, std::string const& index) {
  std::filesystem::create_directories(folder);
  write_safetensors(folder / "one.safetensors", {{"a", ones}});
  write_safetensors(folder / "two.safetensors", {{"b", 2 * ones}});
  write_text(folder / "model.safetensors.index.json", index);
}

std::string index_of(std::string const& map) {
  return R"({"metadata":{"total_size":16},"weight_map":{)" + map + "}}";
}
std::string const whole = index_of(R"("a":"one.safetensors","b":"two.safetensors")");

TEST_CASE("a folder with an index has the tensors of all its shards") {
  TemporaryFolder const folder;
  write_shards(folder.path(), whole);
  for (auto const& path : {folder.path(), folder / "model.safetensors.index.json"}) {
    StoredWeights const weights = open(path);
    CHECK(weights.all().size() == 2);
    CHECK(weights.find("a")->tensor().equal(ones));
    CHECK(weights.find("b")->tensor().equal(2 * ones));
    CHECK(weights.place() == (folder / "model.safetensors.index.json").string());
  }
}

TEST_CASE("an index that leaves its folder, lacks a part or does not fit its shards is refused") {
  TemporaryFolder const folder;
  std::filesystem::path const place = folder / "model";
  auto const refused = [&](std::string const& index, std::string const& why) {
    write_shards(place, index);
    refuses<frugal::FormatError>(place, why);
  };
  write_safetensors(folder / "outside.safetensors", {{"a", ones}});
  std::string const elsewhere = folder / "outside.safetensors";
  std::vector<std::string> const files{
      "../outside.safetensors", "x/../../outside.safetensors", "", "..", elsewhere, "sub/"};
  for (std::string const& file : files) {
    refused(index_of(R"("a":")" + file + R"(","b":"two.safetensors")"),
            "'a' is in \"" + file + "\", which is no file of the folder");
  }
  refused(index_of(R"("a":3,"b":"two.safetensors")"), "no file of the folder");
  refused(R"({"weight_map":{"a":"one.safetensors"}})", "it has no \"metadata\"");
  refused(R"({"metadata":{},"weight_map":{}})", "no number \"total_size\"");
  refused(R"({"metadata":{"total_size":"16"},"weight_map":{}})", "no number \"total_size\"");
  refused(R"({"metadata":{"total_size":16}})", "it has no \"weight_map\"");
  refused("[]", "it is not a JSON object");
  refused("{", "it is not a JSON object");
  refused(index_of(R"("a":"one.safetensors","a":"two.safetensors")"), "'a' is there twice");
  refused(index_of(R"("a":"one.safetensors","b":"three.safetensors")"), "three.safetensors");
  refused(index_of(R"("a":"one.safetensors","c":"two.safetensors")"),
          "two.safetensors does not have 'c'");
}

TEST_CASE("a tensor of a shard that the index does not list is refused") {
  TemporaryFolder const folder;
  write_shards(folder.path(), whole);
  write_safetensors(folder / "two.safetensors", {{"b", ones}, {"c", ones}});
  refuses<frugal::FormatError>(folder.path(), "it does not list 'c' of two.safetensors");
  write_safetensors(folder / "two.safetensors", {{"b", ones}, {"a", ones}});
  refuses<frugal::FormatError>(folder.path(), "it does not list 'a' of two.safetensors");
}

TEST_CASE("a shard may be a link, as caches have it") {
  TemporaryFolder const folder;
  write_shards(folder / "model", whole);
  std::filesystem::rename(folder / "model/one.safetensors", folder / "blob");
  std::filesystem::create_symlink("../blob", folder / "model/one.safetensors");
  CHECK(open(folder / "model").find("a")->tensor().equal(ones));
}

TEST_CASE("a file's first bytes say of which format it is") {
  TemporaryFolder const folder;
  write_safetensors(folder / "w.bin", {{"a", ones}});
  CHECK(open(folder / "w.bin").find("a") != nullptr);
  std::string const pickle =
      Pickle().dict([](Pickle& to) { to.text("a").tensor("0", "Float", 2, 0, {2}, {1}); }).done();
  write_torch_file(folder / "pytorch_model.bin", pickle, {{"0", bytes_of_floats({1, 1})}});
  for (auto const& path : {folder.path(), folder / "pytorch_model.bin"}) {
    CHECK(open(path).find("a")->tensor().equal(ones));
  }
  write_text(folder / "old.pt", std::string("\x80\x02\x8a\nl\xfc\x9c\x46\xf9 j\xa8P\x19.", 15));
  refuses<frugal::FormatError>(folder / "old.pt", "torch.save before PyTorch 1.6");
  write_text(folder / "text", "not weights");
  refuses<frugal::FormatError>(folder / "text", "not a safetensors file");
  refuses<frugal::StoreError>(folder / "nothing", "nothing");
}

TEST_CASE("a folder without weights is refused, and says what it lacks") {
  TemporaryFolder const folder;
  refuses<frugal::StoreError>(folder.path(), "it has neither model.safetensors.index.json");
}

}  // namespace frugal_test::model_weight_files

namespace frugal_test::model_weight_rules {

using frugal::WeightRules;
using frugal::detail::name_in_file;
using frugal::detail::require_rules;
using frugal::detail::texts_of_stars;
using Texts = std::vector<std::string>;

TEST_CASE("each star stands for a text, as short as possible") {
  CHECK(texts_of_stars("a.b", "a.b") == Texts{});
  CHECK_FALSE(texts_of_stars("a.b", "a.bc"));
  CHECK(texts_of_stars("*", "a.b") == Texts{"a.b"});
  CHECK(texts_of_stars("a*", "a") == Texts{""});
  CHECK(texts_of_stars("*.weight", "a.weight.weight") == Texts{"a.weight"});
  CHECK(texts_of_stars("layer.*.*", "layer.1.self.query") == Texts{"1", "self.query"});
  CHECK(texts_of_stars("*.*.b", "x.a.b.b") == Texts{"x", "a.b"});
  CHECK_FALSE(texts_of_stars("layer.*.out", "layer.1.in"));
}

TEST_CASE("the first rename whose pattern fits a name of the module gives its name in the file") {
  WeightRules const rules{.rename = {{"encoder.layer.5.*", "layers.1.*"},
                                     {"encoder.layer.*.attention.self.*", "layers.*.attention.*"},
                                     {"encoder.layer.*", "layers.*"}}};
  CHECK(name_in_file(rules, "layers.1.attention.query.bias") ==
        "encoder.layer.5.attention.query.bias");
  CHECK(name_in_file(rules, "layers.0.attention.query.bias") ==
        "encoder.layer.0.attention.self.query.bias");
  CHECK(name_in_file(rules, "layers.0.output.weight") == "encoder.layer.0.output.weight");
  CHECK(name_in_file(rules, "pooler.weight") == "pooler.weight");
  // A prefix is added where the file has it, and left out where the module has it.
  CHECK(name_in_file({.rename = {{"bert.*", "*"}}}, "a.weight") == "bert.a.weight");
  CHECK(name_in_file({.rename = {{"*", "model.*"}}}, "model.a.weight") == "a.weight");
}

TEST_CASE(
    "rules that are of no tensor of the module are refused, and so are stars without a text") {
  Texts const names{"first.weight", "head.weight"};
  auto const refuses = [&](WeightRules const& rules, char const* why) {
    CHECK_THROWS_WITH_AS(require_rules(rules, names), doctest::Contains(why),
                         frugal::SettingsError);
  };
  CHECK_NOTHROW(require_rules({.rename = {{"a.*", "first.*"}},
                               .parts = {"head.*"},
                               .transpose = {"*.weight"},
                               .resize = {"head.weight"},
                               .allow_missing = {"nothing"},
                               .allow_unexpected = {"nothing"},
                               .allow_misshapen = {"nothing"}},
                              names));
  refuses({.rename = {{"a.*.b", "first.*.*"}}}, "have different numbers of stars");
  refuses({.rename = {{"a.*", "frist.*"}}}, "WeightRules::rename");
  refuses({.parts = {"encoder.*"}}, "the pattern 'encoder.*' matches nothing (WeightRules::parts)");
  refuses({.transpose = {"encoder.*"}}, "WeightRules::transpose");
  refuses({.resize = {"encoder.*"}}, "WeightRules::resize");
}

}  // namespace frugal_test::model_weight_rules
