// SPDX-License-Identifier: Apache-2.0
// needs: text
// What weights.py asks of frugal: reads lines of JSON, each a load, a save or a tokenizer with texts,
// and answers each with a line of JSON.
#include <torch/nn/module.h>

#include <frugal/core/state/module_tensors.hpp>
#include <frugal/data/tensor_dtype.hpp>
#include <frugal/data/text/tokenizer_json.hpp>
#include <frugal/model/load_weights.hpp>
#include <frugal/model/model_config.hpp>
#include <frugal/model/save_weights.hpp>

#include <nlohmann/json.hpp>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace {

using Json = nlohmann::json;
using Names = std::vector<std::string>;

/// A module with these tensors, all zeros: {"name": [type, shape]}. A third element names the tensor
/// that it is tied to.
class Net : public torch::nn::Module {
 public:
  explicit Net(Json const& tensors) {
    for (auto const& [name, about] : tensors.items()) {
      if (about.size() == 2) add(name, made(about));
    }
    for (auto const& [name, about] : tensors.items()) {
      if (about.size() == 3) add(name, known_.at(about[2].get<std::string>()));
    }
  }

 private:
  static at::Tensor made(Json const& about) {
    auto const type = frugal::dtype_of(about[0].get<std::string>());
    return at::zeros(about[1].get<std::vector<std::int64_t>>(),
                     frugal::detail::torch_type(type.value()).value());
  }

  void add(std::string const& name, at::Tensor const& tensor) {
    torch::nn::Module* parent = this;
    std::size_t begin = 0;
    for (std::size_t dot = name.find('.'); dot != std::string::npos; dot = name.find('.', begin)) {
      std::string const part = name.substr(begin, dot - begin);
      auto const children = parent->named_children();
      parent = children.contains(part)
                   ? children[part].get()
                   : parent->register_module(part, std::make_shared<torch::nn::Module>()).get();
      begin = dot + 1;
    }
    parent->register_buffer(name.substr(begin), tensor);
    known_.emplace(name, tensor);
  }

  std::map<std::string, at::Tensor> known_;
};

frugal::WeightRules rules_of(Json const& asked) {
  auto const patterns = [&](char const* key) {
    return frugal::NamePatterns(asked.value(key, Names{}));
  };
  frugal::WeightRules rules{.prefix = asked.value("prefix", ""),
                            .parts = patterns("parts"),
                            .transpose = patterns("transpose"),
                            .resize = patterns("resize"),
                            .allow_missing = patterns("allow_missing"),
                            .allow_unexpected = patterns("allow_unexpected"),
                            .allow_misshapen = patterns("allow_misshapen"),
                            .within = asked.value("within", "")};
  for (Json const& each : asked.value("rename", Json::array())) {
    rules.rename.push_back({each[0].get<std::string>(), each[1].get<std::string>()});
  }
  return rules;
}

/// Loads into a module of zeros, and saves that.
Json load(Json const& asked) {
  Net net(asked.at("module"));
  auto const loaded = frugal::load_weights(net, asked.at("load").get<std::string>(),
                                           rules_of(asked.value("rules", Json::object())));
  auto const saved =
      frugal::save_weights(net, asked.at("save").get<std::string>(),
                           {.shard_bytes = asked.value("shard_bytes", 5'000'000'000U)});
  return {{"matched", loaded.matched},       {"missing", loaded.missing},
          {"unexpected", loaded.unexpected}, {"misshapen", loaded.misshapen},
          {"resized", loaded.resized},       {"total_size", saved.total_size}};
}

/// A text's bytes are hexadecimal: JSON holds no invalid UTF-8.
std::string bytes_of(std::string const& hex) {
  std::string bytes;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2) {
    bytes.push_back(static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16)));
  }
  return bytes;
}

Json tokenize(Json const& asked) {
  auto const tokenizer = frugal::read_tokenizer(asked.at("tokenizer").get<std::string>());
  Json ids = Json::array();
  for (Json const& text : asked.at("texts")) {
    ids.push_back(text.is_array() ? tokenizer.encode(bytes_of(text[0]), bytes_of(text[1])).ids
                                  : tokenizer.encode(bytes_of(text)).ids);
  }
  return {{"ids", ids}, {"padding", tokenizer.padding()}, {"mask", tokenizer.mask()}};
}

Json config(Json const& asked) {
  auto const config = frugal::ModelConfig::read(asked.at("config").get<std::string>());
  return {{"hidden_size", config.get<int>("hidden_size")},
          {"layer_norm_eps", config.get<double>("layer_norm_eps")},
          {"hidden_act", config.get<std::string>("hidden_act")},
          {"architectures", config.get<Names>("architectures")},
          {"missing", config.get<int>("missing", -1)}};
}

}  // namespace

int main() {
  for (std::string line; std::getline(std::cin, line);) {
    Json answer;
    try {
      Json const asked = Json::parse(line);
      answer = asked.contains("load")     ? load(asked)
               : asked.contains("config") ? config(asked)
                                          : tokenize(asked);
    } catch (std::exception const& error) {
      answer = {{"error", error.what()}};
    }
    std::cout << answer.dump(-1, ' ', false, Json::error_handler_t::replace) << std::endl;
  }
}
