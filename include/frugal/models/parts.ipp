// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/models/parts.hpp>

#include <ATen/core/grad_mode.h>
#include <c10/util/Exception.h>
#include <torch/nn/options/linear.h>

#include <frugal/core/libtorch/layer_tensors.hpp>
#include <frugal/core/source/batch.hpp>
#include <frugal/error.hpp>
#include <frugal/inline.hpp>
#include <frugal/model/model_config.hpp>

namespace frugal::detail {

FRUGAL_INLINE at::Tensor embedded(torch::nn::Embedding& table, at::Tensor const& indices,
                                  char const* model) {
  try {
    return table(indices);
  } catch (c10::Error const&) {
    // Looked at now alone: it would cost a pass over the ids of every batch.
    std::int64_t const rows = table->weight.size(0);
    if (!indices.device().is_cpu() || indices.numel() == 0) throw;
    auto const [least, most] = indices.to(at::kLong).aminmax();
    std::int64_t const low = least.item<std::int64_t>(), high = most.item<std::int64_t>();
    if (low >= 0 && high < rows) throw;
    throw DataError({.what = "an index of " + std::to_string(low < 0 ? low : high) +
                             " has no row in a table of " + std::to_string(rows) + " embeddings",
                     .where = model,
                     .why = "the ids of the batch are those of another vocabulary, or -100, which "
                            "stands for an ignored label, is among them",
                     .fix = "Use the tokenizer of the model, or set its vocabulary to the "
                            "tokenizer's."});
  }
}

FRUGAL_INLINE void require_ids(at::Tensor const& ids_BT, std::int64_t before,
                               std::int64_t positions, char const* model) {
  if (!ids_BT.defined() || ids_BT.dim() != 2 || ids_BT.size(1) == 0) {
    throw ShapeError({.what = "token ids are of shape " +
                              (ids_BT.defined() ? shape_text(ids_BT) : std::string("nothing")),
                      .where = model,
                      .why = "they are [B, T]: B texts of T tokens each, and at least one token",
                      .fix = "Add a dimension for a single text: ids.unsqueeze(0)."});
  }
  if (ids_BT.scalar_type() != at::kLong && ids_BT.scalar_type() != at::kInt) {
    throw DtypeError(
        {.what = std::string("token ids are of type ") + c10::toString(ids_BT.scalar_type()),
         .where = model,
         .why = "they are int64 or int32",
         .fix = "Convert them: ids.to(torch::kLong)."});
  }
  if (before + ids_BT.size(1) > positions) {
    throw ShapeError(
        {.what = "a text has " + std::to_string(before + ids_BT.size(1)) +
                 " tokens, and the model " + std::to_string(positions) + " positions",
         .where = model,
         .why = before == 0 ? "" : std::to_string(before) + " of them are in the cache",
         .fix = "Cut the text, or begin with a model of more positions."});
  }
}

FRUGAL_INLINE void require_positive(
    std::initializer_list<std::pair<char const*, std::int64_t>> numbers, char const* model) {
  for (auto const& [name, number] : numbers) {
    if (number > 0) continue;
    throw SettingsError({.what = std::string(name) + " is " + std::to_string(number),
                         .where = model,
                         .why = "it is a number of parts of the model",
                         .fix = "Set it to 1 at least."});
  }
}

FRUGAL_INLINE void require_divides(std::int64_t heads, std::int64_t width, char const* model) {
  if (width % heads == 0) return;
  throw SettingsError(
      {.what = std::to_string(heads) + " heads do not divide " + std::to_string(width),
       .where = model,
       .why = "each head has the same part of it",
       .fix = "Choose a number of heads that divides it."});
}

FRUGAL_INLINE void draw_normal(torch::nn::Module& module, double deviation) {
  at::NoGradGuard const no_gradients;
  module.apply([&](torch::nn::Module& part) {
    if (auto* const linear = dynamic_cast<torch::nn::LinearImpl*>(&part)) {
      linear->weight.normal_(0.0, deviation);
      if (linear->bias.defined()) linear->bias.zero_();
    } else if (auto* const table = dynamic_cast<torch::nn::EmbeddingImpl*>(&part)) {
      table->weight.normal_(0.0, deviation);
      if (auto const padding = table->options.padding_idx()) table->weight[*padding].zero_();
    }
  });
}

FRUGAL_INLINE torch::nn::Linear tied_head(torch::nn::Embedding const& table) {
  std::int64_t const words = table->weight.size(0), width = table->weight.size(1);
  torch::nn::Linear head(torch::nn::LinearOptions(width, 0).bias(false));  // draws no numbers
  head->options.out_features(words);
  head->weight = table->weight;
  own_parameters(*head)["weight"] = table->weight;
  return head;
}

FRUGAL_INLINE void require_config(ModelConfig const& config, char const* key, char const* text) {
  std::string const found = config.get<std::string>(key, text);
  if (found == text) return;
  throw SettingsError({.what = std::string(key) + " is \"" + found + '"',
                       .where = config.name(),
                       .why = std::string("the model computes with \"") + text + "\" alone",
                       .fix = "Use a module of your own for this file."});
}

FRUGAL_INLINE void require_config_off(ModelConfig const& config, char const* key, bool standard) {
  if (config.get<bool>(key, standard) == standard) return;
  throw SettingsError(
      {.what = std::string(key) + " is " + (standard ? "false" : "true"),
       .where = config.name(),
       .why = std::string("the model computes as if it were ") + (standard ? "true" : "false"),
       .fix = "Use a module of your own for this file."});
}

}  // namespace frugal::detail
