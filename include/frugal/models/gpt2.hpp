// SPDX-License-Identifier: Apache-2.0
#pragma once

// Shapes: B texts, T tokens of each, W width, H heads, D width of a head, V words.

#include <ATen/ATen.h>
#include <torch/nn/module.h>
#include <torch/nn/modules/container/modulelist.h>
#include <torch/nn/modules/dropout.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/normalization.h>
#include <torch/nn/pimpl.h>

#include <cstddef>
#include <cstdint>
#include <optional>

#include <frugal/model/model_config.hpp>
#include <frugal/models/causal_model.hpp>

namespace frugal::models {

/// The numbers of a model's config.json; the defaults are those of the smallest GPT-2.
struct Gpt2Options {
  std::int64_t vocabulary = 50257;             ///< vocab_size
  std::int64_t positions = 1024;               ///< n_positions
  std::int64_t width = 768;                    ///< n_embd
  std::int64_t layers = 12;                    ///< n_layer
  std::int64_t heads = 12;                     ///< n_head
  std::optional<std::int64_t> intermediate{};  ///< n_inner; default: 4 * width
  double eps = 1e-5;                           ///< layer_norm_epsilon
  double dropout = 0.1;                        ///< resid_pdrop
  double attention_dropout = 0.1;              ///< attn_pdrop
  double embedding_dropout = 0.1;              ///< embd_pdrop
  double deviation = 0.02;                     ///< initializer_range, of the first weights
  bool tied = true;                            ///< tie_word_embeddings

  /// Of a config.json. SettingsError if the model computes what Gpt2 does not.
  static Gpt2Options from(ModelConfig const& config);
};

/// A linear layer whose weight is [inputs, outputs], as GPT-2's files have it. It is no
/// torch::nn::Linear, so that Lora, quantize and prune leave it alone.
struct Gpt2Conv1DImpl : torch::nn::Module {
  Gpt2Conv1DImpl(std::int64_t inputs, std::int64_t outputs, double deviation);
  at::Tensor forward(at::Tensor const& x) const { return at::linear(x, weight.t(), bias); }

  at::Tensor weight, bias;
};
TORCH_MODULE(Gpt2Conv1D);

struct Gpt2AttentionImpl : torch::nn::Module {
  explicit Gpt2AttentionImpl(Gpt2Options const& options);
  at::Tensor forward(at::Tensor const& x_BTW, KeyValueCache* cache, std::size_t at);

  Gpt2Conv1D c_attn, c_proj;
  torch::nn::Dropout dropout;
  std::int64_t head_width;
  double attention_dropout;
};
TORCH_MODULE(Gpt2Attention);

struct Gpt2MlpImpl : torch::nn::Module {
  explicit Gpt2MlpImpl(Gpt2Options const& options);
  at::Tensor forward(at::Tensor const& x_BTW);

  Gpt2Conv1D c_fc, c_proj;
  torch::nn::Dropout dropout;
};
TORCH_MODULE(Gpt2Mlp);

struct Gpt2LayerImpl : torch::nn::Module {
  explicit Gpt2LayerImpl(Gpt2Options const& options);
  /// `at`: which layer of the cache it is.
  at::Tensor forward(at::Tensor const& x_BTW, KeyValueCache* cache = nullptr, std::size_t at = 0);

  torch::nn::LayerNorm ln_1;
  Gpt2Attention attn;
  torch::nn::LayerNorm ln_2;
  Gpt2Mlp mlp;
};
TORCH_MODULE(Gpt2Layer);

/// All but the head: transformers' GPT2Model, of which most published files are.
struct Gpt2ModelImpl : torch::nn::Module {
  explicit Gpt2ModelImpl(Gpt2Options const& options);
  at::Tensor forward(at::Tensor const& ids_BT, KeyValueCache* cache = nullptr);

  torch::nn::Embedding wte, wpe;
  torch::nn::Dropout drop;
  torch::nn::ModuleList h;
  torch::nn::LayerNorm ln_f;
};
TORCH_MODULE(Gpt2Model);

/// Token ids [B, T] to logits [B, T, V]. Its tensors have the names of transformers' GPT2LMHeadModel.
///
///     Gpt2 net(Gpt2Options::from(ModelConfig::read("gpt2")));
///     load_weights(*net->transformer, "gpt2", {.allow_unexpected = {"h.*.attn.bias"}});
///     at::Tensor const text = generate(net, ids, {.max_new_tokens = 40});
struct Gpt2Impl : CausalModel {
  explicit Gpt2Impl(Gpt2Options const& options = {});
  at::Tensor hidden(at::Tensor const& ids_BT, KeyValueCache* cache) override;
  at::Tensor logits(at::Tensor const& hidden_BTW) override;
  std::int64_t positions() const override { return transformer->wpe->weight.size(0); }

  Gpt2Model transformer;
  torch::nn::Linear lm_head{nullptr};
};
TORCH_MODULE(Gpt2);

}  // namespace frugal::models

#ifndef FRUGAL_COMPILED
#include <frugal/models/gpt2.ipp>
#endif
