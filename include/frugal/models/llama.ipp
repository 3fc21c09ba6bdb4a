// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/models/llama.hpp>

#include <numbers>
#include <string>
#include <tuple>

#include <frugal/error.hpp>
#include <frugal/inline.hpp>
#include <frugal/models/parts.hpp>
#include <frugal/policy/recompute/segments.hpp>

namespace frugal::detail {

FRUGAL_INLINE models::LlamaOptions const& checked(models::LlamaOptions const& options) {
  require_positive({{"the vocabulary", options.vocabulary},
                    {"the width", options.width},
                    {"the number of layers", options.layers},
                    {"the number of heads", options.heads},
                    {"the number of heads of keys", options.key_heads()},
                    {"the intermediate width", options.intermediate},
                    {"the number of positions", options.positions},
                    {"the width of a head", options.head.value_or(1)}},
                   "Llama");
  if (!options.head) require_divides(options.heads, options.width, "Llama");
  require_divides(options.key_heads(), options.heads, "Llama, heads of keys");
  if (options.head_width() % 2 != 0) {
    throw SettingsError(
        {.what = "a head has " + std::to_string(options.head_width()) + " dimensions",
         .where = "Llama",
         .why = "rotary positions turn pairs of dimensions",
         .fix = "Choose an even number."});
  }
  return options;
}

FRUGAL_INLINE torch::nn::Linear llama_linear(std::int64_t inputs, std::int64_t outputs, bool bias) {
  return torch::nn::Linear(torch::nn::LinearOptions(inputs, outputs).bias(bias));
}

/// How fast each pair of dimensions turns, [D / 2]. With scaling: rotations that take longer than the
/// original positions are slowed down, fast ones stay, and those between are in between.
FRUGAL_INLINE at::Tensor llama_speeds(models::LlamaOptions const& options, c10::Device device) {
  std::int64_t const width = options.head_width();
  auto const floats = at::TensorOptions().dtype(at::kFloat).device(device);
  at::Tensor const part = at::arange(0, width, 2, floats) / static_cast<double>(width);
  at::Tensor const speed = at::pow(at::Scalar(options.theta), part).reciprocal();
  if (!options.scaling) return speed;
  models::RopeScaling const& scaling = *options.scaling;
  at::Tensor const turn = 2 * std::numbers::pi / speed;  // tokens of a whole turn
  at::Tensor const slowed = speed / scaling.factor;
  at::Tensor const share = (scaling.positions / turn - scaling.low) / (scaling.high - scaling.low);
  at::Tensor const between = (1 - share) * slowed + share * speed;
  return at::where(turn > scaling.positions / scaling.low, slowed,
                   at::where(turn < scaling.positions / scaling.high, speed, between));
}

}  // namespace frugal::detail

namespace frugal::models {

FRUGAL_INLINE LlamaOptions LlamaOptions::from(ModelConfig const& config) {
  detail::require_config(config, "model_type", "llama");
  detail::require_config(config, "hidden_act", "silu");
  LlamaOptions options{.vocabulary = config.get<std::int64_t>("vocab_size"),
                       .width = config.get<std::int64_t>("hidden_size"),
                       .layers = config.get<std::int64_t>("num_hidden_layers"),
                       .heads = config.get<std::int64_t>("num_attention_heads"),
                       .key_value_heads = {},
                       .intermediate = config.get<std::int64_t>("intermediate_size"),
                       .positions = config.get<std::int64_t>("max_position_embeddings", 2048),
                       .head = {},
                       .eps = config.get<double>("rms_norm_eps", 1e-6),
                       .theta = config.get<double>("rope_theta", 10000),
                       .scaling = {},
                       .attention_dropout = config.get<double>("attention_dropout", 0),
                       .attention_bias = config.get<bool>("attention_bias", false),
                       .mlp_bias = config.get<bool>("mlp_bias", false),
                       .deviation = config.get<double>("initializer_range", 0.02),
                       .tied = config.get<bool>("tie_word_embeddings", false)};
  if (config.has("num_key_value_heads")) {
    options.key_value_heads = config.get<std::int64_t>("num_key_value_heads");
  }
  if (config.has("head_dim")) options.head = config.get<std::int64_t>("head_dim");
  // transformers 5 writes rope_parameters, with rope_theta in it, and earlier ones rope_scaling.
  for (char const* const key : {"rope_parameters", "rope_scaling"}) {
    if (!config.has(key)) continue;
    ModelConfig const rope = config.part(key);
    options.theta = rope.get<double>("rope_theta", options.theta);
    std::string const type =
        rope.get<std::string>("rope_type", rope.get<std::string>("type", "default"));
    if (type == "llama3") {
      options.scaling =
          RopeScaling{.factor = rope.get<double>("factor"),
                      .low = rope.get<double>("low_freq_factor"),
                      .high = rope.get<double>("high_freq_factor"),
                      .positions = rope.get<double>("original_max_position_embeddings")};
    } else {
      detail::require_config(rope, rope.has("rope_type") ? "rope_type" : "type", "default");
    }
    if (rope.get<double>("partial_rotary_factor", 1) != 1) {
      throw SettingsError({.what = "partial_rotary_factor is not 1",
                           .where = config.name(),
                           .why = "Llama turns all dimensions of a head",
                           .fix = "Use a module of your own for this file."});
    }
  }
  return options;
}

FRUGAL_INLINE LlamaRotation::LlamaRotation(LlamaOptions const& options, std::int64_t before,
                                           std::int64_t tokens, at::Tensor const& x) {
  // In single precision whatever the model's type is: positions beyond 256 are no numbers of BF16.
  at::Tensor const speed = detail::llama_speeds(options, x.device());
  at::Tensor const place_T = at::arange(before, before + tokens, speed.options());
  at::Tensor const angle_TD = (place_T.unsqueeze(1) * speed).repeat({1, 2});
  cos_TD = angle_TD.cos().to(x.scalar_type());
  sin_TD = angle_TD.sin().to(x.scalar_type());
}

FRUGAL_INLINE at::Tensor LlamaRotation::operator()(at::Tensor const& x_BHTD) const {
  auto const halves = x_BHTD.chunk(2, -1);
  return x_BHTD * cos_TD + at::cat({-halves[1], halves[0]}, -1) * sin_TD;
}

FRUGAL_INLINE LlamaAttentionImpl::LlamaAttentionImpl(LlamaOptions const& options)
    : query(register_module(
          "q_proj", detail::llama_linear(options.width, options.heads * options.head_width(),
                                         options.attention_bias))),
      key(register_module(
          "k_proj", detail::llama_linear(options.width, options.key_heads() * options.head_width(),
                                         options.attention_bias))),
      value(register_module(
          "v_proj", detail::llama_linear(options.width, options.key_heads() * options.head_width(),
                                         options.attention_bias))),
      output(
          register_module("o_proj", detail::llama_linear(options.heads * options.head_width(),
                                                         options.width, options.attention_bias))),
      head_width(options.head_width()),
      dropout(options.attention_dropout) {}

FRUGAL_INLINE at::Tensor LlamaAttentionImpl::forward(at::Tensor const& x_BTW,
                                                     LlamaRotation const& rotate,
                                                     KeyValueCache* cache, std::size_t at) {
  at::Tensor const query_BHTD = rotate(detail::heads_of(detail::linear(query, x_BTW), head_width));
  at::Tensor key_BGSD = rotate(detail::heads_of(detail::linear(key, x_BTW), head_width));
  at::Tensor value_BGSD = detail::heads_of(detail::linear(value, x_BTW), head_width);
  if (cache != nullptr) std::tie(key_BGSD, value_BGSD) = cache->add(at, key_BGSD, value_BGSD);
  at::Tensor const mixed_BHTD =
      detail::causal_attention(query_BHTD, key_BGSD, value_BGSD, is_training() ? dropout : 0.0);
  return detail::linear(output, mixed_BHTD.transpose(1, 2).flatten(2));
}

FRUGAL_INLINE LlamaMlpImpl::LlamaMlpImpl(LlamaOptions const& options)
    : gate(register_module("gate_proj", detail::llama_linear(options.width, options.intermediate,
                                                             options.mlp_bias))),
      up(register_module(
          "up_proj", detail::llama_linear(options.width, options.intermediate, options.mlp_bias))),
      down(register_module("down_proj", detail::llama_linear(options.intermediate, options.width,
                                                             options.mlp_bias))) {}

FRUGAL_INLINE at::Tensor LlamaMlpImpl::forward(at::Tensor const& x_BTW) {
  return detail::linear(down, at::silu(detail::linear(gate, x_BTW)) * detail::linear(up, x_BTW));
}

FRUGAL_INLINE LlamaLayerImpl::LlamaLayerImpl(LlamaOptions const& options)
    : attention(register_module("self_attn", LlamaAttention(options))),
      mlp(register_module("mlp", LlamaMlp(options))),
      before_attention(register_module("input_layernorm", RmsNorm(options))),
      before_mlp(register_module("post_attention_layernorm", RmsNorm(options))) {}

FRUGAL_INLINE at::Tensor LlamaLayerImpl::forward(at::Tensor const& x_BTW,
                                                 LlamaRotation const& rotate, KeyValueCache* cache,
                                                 std::size_t at) {
  at::Tensor const attended_BTW = x_BTW + attention(before_attention(x_BTW), rotate, cache, at);
  return attended_BTW + mlp(before_mlp(attended_BTW));
}

FRUGAL_INLINE LlamaModelImpl::LlamaModelImpl(LlamaOptions const& of)
    : options(of),
      embeddings(
          register_module("embed_tokens", torch::nn::Embedding(options.vocabulary, options.width))),
      layers(register_module("layers", torch::nn::ModuleList())),
      norm(register_module("norm", RmsNorm(options))) {
  for (std::int64_t i = 0; i < options.layers; ++i) layers->push_back(LlamaLayer(options));
}

FRUGAL_INLINE at::Tensor LlamaModelImpl::forward(at::Tensor const& ids_BT, KeyValueCache* cache) {
  std::int64_t const before = cache == nullptr ? 0 : cache->tokens();
  detail::require_ids(ids_BT, before, options.positions, "Llama");
  at::Tensor x_BTW = detail::embedded(embeddings, ids_BT, "Llama");
  LlamaRotation const rotate(options, before, ids_BT.size(1), x_BTW);
  if (cache == nullptr) {
    return norm(each(layers, x_BTW, [rotate](auto& layer, at::Tensor const& in_BTW) {
      return layer->template as<LlamaLayer>()->forward(in_BTW, rotate);
    }));
  }
  std::size_t at = 0;
  for (auto const& layer : *layers) {
    x_BTW = layer->as<LlamaLayer>()->forward(x_BTW, rotate, cache, at++);
  }
  return norm(x_BTW);
}

FRUGAL_INLINE LlamaImpl::LlamaImpl(LlamaOptions const& options)
    : model(register_module("model", LlamaModel(detail::checked(options)))) {
  if (!options.tied) {
    head =
        register_module("lm_head", detail::llama_linear(options.width, options.vocabulary, false));
  }
  detail::draw_normal(*this, options.deviation);
  if (options.tied) head = register_module("lm_head", detail::tied_head(model->embeddings));
}

FRUGAL_INLINE at::Tensor LlamaImpl::hidden(at::Tensor const& ids_BT, KeyValueCache* cache) {
  return model(ids_BT, cache);
}

FRUGAL_INLINE at::Tensor LlamaImpl::logits(at::Tensor const& hidden_BTW) {
  return detail::linear(head, hidden_BTW);
}

}  // namespace frugal::models
