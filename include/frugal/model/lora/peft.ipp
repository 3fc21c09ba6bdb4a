// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/model/lora/peft.hpp>

#include <frugal/core/libtorch/fixed_tensors.hpp>
#include <frugal/inline.hpp>

#include <optional>

namespace frugal::detail {

FRUGAL_INLINE std::vector<std::pair<std::string, at::Tensor>> peft_tensors(LoraAdapter& adapter) {
  bool const table = adapter.op() == LayerCall::Operator::embedding;
  std::vector<std::pair<std::string, at::Tensor>> all{
      {table ? ".lora_embedding_A" : ".lora_A.weight", adapter.a()},
      {table ? ".lora_embedding_B" : ".lora_B.weight", adapter.b()}};
  if (adapter.magnitude().defined()) {
    bool const conv = adapter.op() == LayerCall::Operator::conv2d;
    at::Tensor const lengths = adapter.magnitude();
    all.emplace_back(".lora_magnitude_vector", conv ? lengths.view({1, -1, 1, 1}) : lengths);
  }
  return all;
}

FRUGAL_INLINE void refuse_peft(std::filesystem::path const& file, std::string why) {
  throw FormatError({.what = "this adapter cannot be loaded",
                     .where = file.string(),
                     .why = std::move(why),
                     .fix =
                         "Give a folder that PEFT's save_pretrained or save_adapter has written, "
                         "of LoRA without the option that is named."});
}

FRUGAL_INLINE void require_known_options(Json const& config, std::filesystem::path const& file) {
  for (Json const& item : config.items()) {
    std::string const& key = item.name();
    // Of every option of PEFT, null is off.
    if (item.is(Json::Kind::null) || std::ranges::find(peft_harmless, key) != peft_harmless.end())
      continue;
    if (key == "use_rslora" || key == "use_dora") {
      if (!item.is(Json::Kind::boolean)) refuse_peft(file, "its '" + key + "' is no boolean");
      continue;
    }
    // An empty list of tokens still turns aLoRA on.
    bool const off =
        key != "alora_invocation_tokens" &&
        ((item.is(Json::Kind::boolean) && !item.truth()) ||
         ((item.is(Json::Kind::array) || item.is(Json::Kind::object)) && item.items().empty()));
    bool const known = std::ranges::find(peft_options, key) != peft_options.end();
    if (known && off) continue;
    refuse_peft(file, known ? "its option '" + key + "' is on, and frugal does not compute it"
                            : "frugal does not know its option '" + key + "'");
  }
}

FRUGAL_INLINE void require_known_beginning(Json const* begin, std::filesystem::path const& file) {
  if (begin == nullptr || begin->is(Json::Kind::boolean) || begin->is(Json::Kind::null)) return;
  std::string const& how = begin->text();
  for (char const* keeps_base : {"gaussian", "orthogonal", "pissa"}) {
    if (begin->is(Json::Kind::text) && how == keeps_base) return;
  }
  refuse_peft(
      file, how.starts_with("pissa_niter")
                ? "its init_lora_weights '" + how +
                      "' has taken a random approximation out of the base, which no file has"
                : "its init_lora_weights '" + how + "' changes the base, or is unknown to frugal");
}

FRUGAL_INLINE LoraSettings read_peft_config(std::filesystem::path const& file) {
  JsonError error;
  auto const json = Json::parse(read_whole_file(file), &error);
  if (!json || !json->is(Json::Kind::object)) refuse_peft(file, "it is no JSON object");
  auto const* const type = json->find("peft_type");
  if (type == nullptr || type->text() != "LORA") {
    refuse_peft(file,
                "its peft_type is " + (type == nullptr ? "missing" : "'" + type->text() + "'"));
  }
  auto const truth = [&](char const* key) {
    auto const* const value = json->find(key);
    return value != nullptr && value->truth();
  };
  auto const number = [&](char const* key, std::optional<double> otherwise) {
    auto const* const value = json->find(key);
    if (value == nullptr && otherwise) return *otherwise;
    auto const found = value == nullptr ? std::nullopt : value->as_double();
    if (!found || *found < 0)
      refuse_peft(file, std::string("'") + key + "' is no number of 0 or more");
    return *found;
  };
  require_known_options(*json, file);
  if (auto const* bias = json->find("bias"); bias != nullptr && bias->text() != "none") {
    refuse_peft(file, "it trains biases ('bias' is '" + bias->text() + "')");
  }
  auto const* const begin = json->find("init_lora_weights");
  require_known_beginning(begin, file);
  std::string const how = begin == nullptr ? "" : begin->text();
  double const rank = number("r", std::nullopt);
  if (rank < 1 || rank != static_cast<double>(static_cast<std::int64_t>(rank))) {
    refuse_peft(file, "'r' is no rank");
  }
  return {.rank = static_cast<std::int64_t>(rank),
          .alpha = number("lora_alpha", 8),
          .dropout = number("lora_dropout", 0),
          .rank_stabilized = truth("use_rslora"),
          .dora = truth("use_dora"),
          .pissa = how == "pissa"};
}

FRUGAL_INLINE std::map<std::string, at::Tensor> trained_beside_adapters(torch::nn::Module& root,
                                                                        std::string_view adapter) {
  std::map<std::string, at::Tensor> found;
  std::string const marker = std::string(".") + adapters_child + ".";
  auto const add_of = [&](std::string const& prefix, torch::nn::Module const& module) {
    if (prefix.find(marker) != std::string::npos) return;
    auto const parameters = module.named_parameters(/*recurse=*/false);
    bool trains = false;
    for (auto const& item : parameters) {
      if (!item.value().defined() || !is_head_of(item.value(), adapter)) continue;
      trains = true;
      found.emplace(prefix + item.key(), item.value());
    }
    auto const buffers = module.named_buffers(/*recurse=*/false);
    if (!trains && !(parameters.is_empty() && buffers.contains("running_mean"))) return;
    for (auto const& item : buffers) {
      if (item.value().defined() && !is_fixed(item.value())) {
        found.emplace(prefix + item.key(), item.value());
      }
    }
  };
  add_of("", root);
  for (auto const& item : root.named_modules("", /*include_self=*/false)) {
    add_of(item.key() + ".", *item.value());
  }
  return found;
}

}  // namespace frugal::detail
