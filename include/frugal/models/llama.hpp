// SPDX-License-Identifier: Apache-2.0
#pragma once

// Shapes: B texts, T tokens of each, W width, H heads, G heads of keys and values, D width of a head, V
// words.

#include <ATen/ATen.h>
#include <torch/nn/module.h>
#include <torch/nn/modules/container/modulelist.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/pimpl.h>

#include <cstddef>
#include <cstdint>
#include <optional>

#include <frugal/model/model_config.hpp>
#include <frugal/models/causal_model.hpp>

namespace frugal::models {

/// Rotary positions that are stretched for longer texts, as Llama 3.1 does (rope_type "llama3").
struct RopeScaling {
  double factor = 8;        ///< by which slow rotations are slowed down
  double low = 1;           ///< low_freq_factor
  double high = 4;          ///< high_freq_factor
  double positions = 8192;  ///< original_max_position_embeddings
};

/// The numbers of a model's config.json.
struct LlamaOptions {
  std::int64_t vocabulary = 32000;                ///< vocab_size
  std::int64_t width = 288;                       ///< hidden_size
  std::int64_t layers = 6;                        ///< num_hidden_layers
  std::int64_t heads = 6;                         ///< num_attention_heads
  std::optional<std::int64_t> key_value_heads{};  ///< num_key_value_heads; default: heads
  std::int64_t intermediate = 768;                ///< intermediate_size
  std::int64_t positions = 2048;                  ///< max_position_embeddings
  std::optional<std::int64_t> head{};             ///< head_dim; default: width / heads
  double eps = 1e-5;                              ///< rms_norm_eps
  double theta = 10000;                           ///< rope_theta
  std::optional<RopeScaling> scaling{};           ///< rope_scaling
  double attention_dropout = 0;                   ///< attention_dropout
  bool attention_bias = false;                    ///< attention_bias
  bool mlp_bias = false;                          ///< mlp_bias
  double deviation = 0.02;                        ///< initializer_range, of the first weights
  bool tied = false;                              ///< tie_word_embeddings

  std::int64_t head_width() const { return head.value_or(width / heads); }
  std::int64_t key_heads() const { return key_value_heads.value_or(heads); }

  /// Of a config.json. SettingsError if the model computes what Llama does not.
  static LlamaOptions from(ModelConfig const& config);
};

struct RmsNormImpl : torch::nn::Module {
  explicit RmsNormImpl(LlamaOptions const& options)
      : weight(register_parameter("weight", at::ones({options.width}))), eps(options.eps) {}
  at::Tensor forward(at::Tensor const& x) const {
    return at::rms_norm(x, weight.sizes(), weight, eps);
  }

  at::Tensor weight;
  double eps;
};
TORCH_MODULE(RmsNorm);

/// The angles of rotary positions. Each pair of a head's dimensions, (i, i + D / 2), turns with the
/// position at a speed of its own. Computed for each pass, so that no buffer must move with the model.
struct LlamaRotation {
  /// Of `tokens` positions behind `before` others, for keys and queries like `x`.
  LlamaRotation(LlamaOptions const& options, std::int64_t before, std::int64_t tokens,
                at::Tensor const& x);

  at::Tensor operator()(at::Tensor const& x_BHTD) const;

  at::Tensor cos_TD, sin_TD;
};

struct LlamaAttentionImpl : torch::nn::Module {
  explicit LlamaAttentionImpl(LlamaOptions const& options);
  at::Tensor forward(at::Tensor const& x_BTW, LlamaRotation const& rotate, KeyValueCache* cache,
                     std::size_t at);

  torch::nn::Linear query, key, value, output;
  std::int64_t head_width;
  double dropout;
};
TORCH_MODULE(LlamaAttention);

/// SwiGLU.
struct LlamaMlpImpl : torch::nn::Module {
  explicit LlamaMlpImpl(LlamaOptions const& options);
  at::Tensor forward(at::Tensor const& x_BTW);

  torch::nn::Linear gate, up, down;
};
TORCH_MODULE(LlamaMlp);

struct LlamaLayerImpl : torch::nn::Module {
  explicit LlamaLayerImpl(LlamaOptions const& options);
  /// `at`: which layer of the cache it is.
  at::Tensor forward(at::Tensor const& x_BTW, LlamaRotation const& rotate,
                     KeyValueCache* cache = nullptr, std::size_t at = 0);

  LlamaAttention attention;
  LlamaMlp mlp;
  RmsNorm before_attention, before_mlp;
};
TORCH_MODULE(LlamaLayer);

/// All but the head, below the name that Hugging Face gives it: model.layers.0, ...
struct LlamaModelImpl : torch::nn::Module {
  explicit LlamaModelImpl(LlamaOptions const& of);
  at::Tensor forward(at::Tensor const& ids_BT, KeyValueCache* cache = nullptr);

  LlamaOptions options;
  torch::nn::Embedding embeddings;
  torch::nn::ModuleList layers;
  RmsNorm norm;
};
TORCH_MODULE(LlamaModel);

/// Token ids [B, T] to logits [B, T, V]: RMSNorm before each half of a layer, rotary positions, grouped
/// heads, SwiGLU. Its tensors have the names of transformers' LlamaForCausalLM.
///
///     Llama net(LlamaOptions::from(ModelConfig::read("SmolLM2-135M")));
///     load_weights(net, "SmolLM2-135M");
///     at::Tensor const text = generate(net, ids, {.max_new_tokens = 40});
struct LlamaImpl : CausalModel {
  explicit LlamaImpl(LlamaOptions const& options = {});
  at::Tensor hidden(at::Tensor const& ids_BT, KeyValueCache* cache) override;
  at::Tensor logits(at::Tensor const& hidden_BTW) override;
  std::int64_t positions() const override { return model->options.positions; }

  LlamaModel model;
  torch::nn::Linear head{nullptr};
};
TORCH_MODULE(Llama);

}  // namespace frugal::models

#ifndef FRUGAL_COMPILED
#include <frugal/models/llama.ipp>
#endif
