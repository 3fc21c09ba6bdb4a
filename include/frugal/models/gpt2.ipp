// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/models/gpt2.hpp>

#include <ATen/core/grad_mode.h>

#include <cmath>
#include <tuple>

#include <frugal/inline.hpp>
#include <frugal/models/parts.hpp>
#include <frugal/policy/recompute/segments.hpp>

namespace frugal::detail {

FRUGAL_INLINE models::Gpt2Options const& checked(models::Gpt2Options const& options) {
  require_positive({{"the vocabulary", options.vocabulary},
                    {"the number of positions", options.positions},
                    {"the width", options.width},
                    {"the number of layers", options.layers},
                    {"the number of heads", options.heads},
                    {"the intermediate width", options.intermediate.value_or(1)}},
                   "Gpt2");
  require_divides(options.heads, options.width, "Gpt2");
  return options;
}

FRUGAL_INLINE torch::nn::LayerNorm gpt2_norm(models::Gpt2Options const& options) {
  return torch::nn::LayerNorm(torch::nn::LayerNormOptions({options.width}).eps(options.eps));
}

/// Of the layers whose outputs are added up: smaller, the more layers there are.
FRUGAL_INLINE double gpt2_residual(models::Gpt2Options const& options) {
  return options.deviation / std::sqrt(2.0 * static_cast<double>(options.layers));
}

}  // namespace frugal::detail

namespace frugal::models {

FRUGAL_INLINE Gpt2Options Gpt2Options::from(ModelConfig const& config) {
  detail::require_config(config, "model_type", "gpt2");
  detail::require_config(config, "activation_function", "gelu_new");
  detail::require_config_off(config, "scale_attn_weights", true);
  detail::require_config_off(config, "scale_attn_by_inverse_layer_idx");
  detail::require_config_off(config, "add_cross_attention");
  Gpt2Options const standard;
  Gpt2Options options{
      .vocabulary = config.get<std::int64_t>("vocab_size"),
      .positions = config.get<std::int64_t>("n_positions"),
      .width = config.get<std::int64_t>("n_embd"),
      .layers = config.get<std::int64_t>("n_layer"),
      .heads = config.get<std::int64_t>("n_head"),
      .intermediate = {},
      .eps = config.get<double>("layer_norm_epsilon", standard.eps),
      .dropout = config.get<double>("resid_pdrop", standard.dropout),
      .attention_dropout = config.get<double>("attn_pdrop", standard.attention_dropout),
      .embedding_dropout = config.get<double>("embd_pdrop", standard.embedding_dropout),
      .deviation = config.get<double>("initializer_range", standard.deviation),
      .tied = config.get<bool>("tie_word_embeddings", standard.tied)};
  if (config.has("n_inner")) options.intermediate = config.get<std::int64_t>("n_inner");
  return options;
}

FRUGAL_INLINE Gpt2Conv1DImpl::Gpt2Conv1DImpl(std::int64_t inputs, std::int64_t outputs,
                                             double deviation)
    : weight(register_parameter("weight", at::empty({inputs, outputs}).normal_(0.0, deviation))),
      bias(register_parameter("bias", at::zeros({outputs}))) {}

FRUGAL_INLINE Gpt2AttentionImpl::Gpt2AttentionImpl(Gpt2Options const& options)
    : c_attn(register_module("c_attn",
                             Gpt2Conv1D(options.width, 3 * options.width, options.deviation))),
      c_proj(register_module(
          "c_proj", Gpt2Conv1D(options.width, options.width, detail::gpt2_residual(options)))),
      dropout(register_module("resid_dropout", torch::nn::Dropout(options.dropout))),
      head_width(options.width / options.heads),
      attention_dropout(options.attention_dropout) {}

FRUGAL_INLINE at::Tensor Gpt2AttentionImpl::forward(at::Tensor const& x_BTW, KeyValueCache* cache,
                                                    std::size_t at) {
  auto const parts = c_attn(x_BTW).chunk(3, -1);
  at::Tensor const query_BHTD = detail::heads_of(parts[0], head_width);
  at::Tensor key_BHSD = detail::heads_of(parts[1], head_width);
  at::Tensor value_BHSD = detail::heads_of(parts[2], head_width);
  if (cache != nullptr) std::tie(key_BHSD, value_BHSD) = cache->add(at, key_BHSD, value_BHSD);
  at::Tensor const mixed_BHTD = detail::causal_attention(query_BHTD, key_BHSD, value_BHSD,
                                                         is_training() ? attention_dropout : 0.0);
  return dropout(c_proj(mixed_BHTD.transpose(1, 2).flatten(2)));
}

FRUGAL_INLINE Gpt2MlpImpl::Gpt2MlpImpl(Gpt2Options const& options)
    : c_fc(register_module(
          "c_fc", Gpt2Conv1D(options.width, options.intermediate.value_or(4 * options.width),
                             options.deviation))),
      c_proj(register_module("c_proj", Gpt2Conv1D(options.intermediate.value_or(4 * options.width),
                                                  options.width, detail::gpt2_residual(options)))),
      dropout(register_module("dropout", torch::nn::Dropout(options.dropout))) {}

FRUGAL_INLINE at::Tensor Gpt2MlpImpl::forward(at::Tensor const& x_BTW) {
  return dropout(c_proj(at::gelu(c_fc(x_BTW), "tanh")));
}

FRUGAL_INLINE Gpt2LayerImpl::Gpt2LayerImpl(Gpt2Options const& options)
    : ln_1(register_module("ln_1", detail::gpt2_norm(options))),
      attn(register_module("attn", Gpt2Attention(options))),
      ln_2(register_module("ln_2", detail::gpt2_norm(options))),
      mlp(register_module("mlp", Gpt2Mlp(options))) {}

FRUGAL_INLINE at::Tensor Gpt2LayerImpl::forward(at::Tensor const& x_BTW, KeyValueCache* cache,
                                                std::size_t at) {
  at::Tensor const attended_BTW = x_BTW + attn(ln_1(x_BTW), cache, at);
  return attended_BTW + mlp(ln_2(attended_BTW));
}

FRUGAL_INLINE Gpt2ModelImpl::Gpt2ModelImpl(Gpt2Options const& options)
    : wte(register_module("wte", torch::nn::Embedding(options.vocabulary, options.width))),
      wpe(register_module("wpe", torch::nn::Embedding(options.positions, options.width))),
      drop(register_module("drop", torch::nn::Dropout(options.embedding_dropout))),
      h(register_module("h", torch::nn::ModuleList())),
      ln_f(register_module("ln_f", detail::gpt2_norm(options))) {
  detail::draw_normal(*this, options.deviation);
  for (std::int64_t i = 0; i < options.layers; ++i) h->push_back(Gpt2Layer(options));
}

FRUGAL_INLINE at::Tensor Gpt2ModelImpl::forward(at::Tensor const& ids_BT, KeyValueCache* cache) {
  std::int64_t const before = cache == nullptr ? 0 : cache->tokens();
  detail::require_ids(ids_BT, before, wpe->weight.size(0), "Gpt2");
  at::Tensor const places_T =
      at::arange(before, before + ids_BT.size(1), ids_BT.options().dtype(at::kLong));
  at::Tensor x_BTW = drop(detail::embedded(wte, ids_BT, "Gpt2") + wpe(places_T));
  if (cache == nullptr) {
    return ln_f(each(h, x_BTW, [](auto& layer, at::Tensor const& in_BTW) {
      return layer->template as<Gpt2Layer>()->forward(in_BTW);
    }));
  }
  std::size_t at = 0;
  for (auto const& layer : *h) x_BTW = layer->as<Gpt2Layer>()->forward(x_BTW, cache, at++);
  return ln_f(x_BTW);
}

FRUGAL_INLINE Gpt2Impl::Gpt2Impl(Gpt2Options const& options)
    : transformer(register_module("transformer", Gpt2Model(detail::checked(options)))) {
  if (options.tied) {
    lm_head = register_module("lm_head", detail::tied_head(transformer->wte));
  } else {
    lm_head = register_module(
        "lm_head",
        torch::nn::Linear(torch::nn::LinearOptions(options.width, options.vocabulary).bias(false)));
    detail::draw_normal(*lm_head, options.deviation);
  }
}

FRUGAL_INLINE at::Tensor Gpt2Impl::hidden(at::Tensor const& ids_BT, KeyValueCache* cache) {
  return transformer(ids_BT, cache);
}

FRUGAL_INLINE at::Tensor Gpt2Impl::logits(at::Tensor const& hidden_BTW) {
  return detail::linear(lm_head, hidden_BTW);
}

}  // namespace frugal::models
