// SPDX-License-Identifier: Apache-2.0
// A GPT in the Llama layout: RMSNorm before each half of a layer, rotary positions, grouped heads,
// SwiGLU. Its tensors have the names of the Hugging Face layout, so that load_weights() reads such a
// model's file without a map.
//
// Shapes: B texts, T tokens of each, W width, H heads, G heads of keys and values, D width of a head, V
// words.
#pragma once

#include <ATen/ATen.h>
#include <torch/nn/module.h>
#include <torch/nn/modules/container/modulelist.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/pimpl.h>

#include <cstdint>
#include <optional>
#include <vector>

namespace finetune {

/// The numbers of a model's config.json. Scaled rotary positions (rope_scaling) are not supported.
struct LlamaSizes {
  std::int64_t vocabulary = 32000;     ///< vocab_size
  std::int64_t width = 288;            ///< hidden_size
  std::int64_t layers = 6;             ///< num_hidden_layers
  std::int64_t heads = 6;              ///< num_attention_heads
  std::int64_t key_value_heads = 6;    ///< num_key_value_heads
  std::int64_t intermediate = 768;     ///< intermediate_size
  std::optional<std::int64_t> head{};  ///< head_dim; default: width / heads
  double eps = 1e-5;                   ///< rms_norm_eps
  double theta = 10000;                ///< rope_theta
  bool tied = false;                   ///< tie_word_embeddings: the head is the embeddings' matrix

  std::int64_t head_width() const { return head.value_or(width / heads); }
};

struct RmsNormImpl : torch::nn::Module {
  explicit RmsNormImpl(LlamaSizes const& sizes)
      : weight(register_parameter("weight", at::ones({sizes.width}))), eps(sizes.eps) {}
  at::Tensor forward(at::Tensor const& x) const {
    return at::rms_norm(x, weight.sizes(), weight, eps);
  }

  at::Tensor weight;
  double eps;
};
TORCH_MODULE(RmsNorm);

/// The angles of rotary positions. Each pair of a head's dimensions, (i, i + D / 2), turns with the
/// position at a speed of its own.
struct Rotation {
  Rotation(LlamaSizes const& sizes, at::Tensor const& x_BTW) {
    std::int64_t const width = sizes.head_width();
    auto const options = at::TensorOptions().dtype(at::kFloat).device(x_BTW.device());
    at::Tensor const part = at::arange(0, width, 2, options) / static_cast<double>(width);
    at::Tensor const speed = at::pow(at::Scalar(sizes.theta), part).reciprocal();
    at::Tensor const angle_TD = at::outer(at::arange(x_BTW.size(1), options), speed).repeat({1, 2});
    cos_TD = angle_TD.cos().to(x_BTW.scalar_type());
    sin_TD = angle_TD.sin().to(x_BTW.scalar_type());
  }

  at::Tensor operator()(at::Tensor const& x_BHTD) const {
    auto const halves = x_BHTD.chunk(2, -1);
    return x_BHTD * cos_TD + at::cat({-halves[1], halves[0]}, -1) * sin_TD;
  }

  at::Tensor cos_TD, sin_TD;
};

inline torch::nn::Linear linear(std::int64_t inputs, std::int64_t outputs) {
  return torch::nn::Linear(torch::nn::LinearOptions(inputs, outputs).bias(false));
}

struct LlamaAttentionImpl : torch::nn::Module {
  explicit LlamaAttentionImpl(LlamaSizes const& sizes)
      : query(register_module("q_proj", linear(sizes.width, sizes.heads * sizes.head_width()))),
        key(register_module("k_proj",
                            linear(sizes.width, sizes.key_value_heads * sizes.head_width()))),
        value(register_module("v_proj",
                              linear(sizes.width, sizes.key_value_heads * sizes.head_width()))),
        output(register_module("o_proj", linear(sizes.heads * sizes.head_width(), sizes.width))),
        head_width(sizes.head_width()) {}

  at::Tensor forward(at::Tensor const& x_BTW, Rotation const& rotate) {
    at::Tensor const query_BHTD = rotate(heads(query(x_BTW)));
    at::Tensor const key_BGTD = rotate(heads(key(x_BTW)));
    at::Tensor const mixed_BHTD = at::scaled_dot_product_attention(
        query_BHTD, key_BGTD, heads(value(x_BTW)), {}, /*dropout_p=*/0.0, /*is_causal=*/true,
        /*scale=*/std::nullopt, /*enable_gqa=*/query_BHTD.size(1) != key_BGTD.size(1));
    return output(mixed_BHTD.transpose(1, 2).flatten(2));
  }

  // The number of heads is that of the layer's output, so that it may lose some by pruning.
  at::Tensor heads(at::Tensor const& x_BTW) const {
    return x_BTW.unflatten(2, {-1, head_width}).transpose(1, 2);
  }

  torch::nn::Linear query, key, value, output;
  std::int64_t head_width;
};
TORCH_MODULE(LlamaAttention);

/// SwiGLU.
struct LlamaMlpImpl : torch::nn::Module {
  explicit LlamaMlpImpl(LlamaSizes const& sizes)
      : gate(register_module("gate_proj", linear(sizes.width, sizes.intermediate))),
        up(register_module("up_proj", linear(sizes.width, sizes.intermediate))),
        down(register_module("down_proj", linear(sizes.intermediate, sizes.width))) {}
  at::Tensor forward(at::Tensor const& x_BTW) { return down(at::silu(gate(x_BTW)) * up(x_BTW)); }

  torch::nn::Linear gate, up, down;
};
TORCH_MODULE(LlamaMlp);

struct LlamaLayerImpl : torch::nn::Module {
  explicit LlamaLayerImpl(LlamaSizes const& sizes)
      : attention(register_module("self_attn", LlamaAttention(sizes))),
        mlp(register_module("mlp", LlamaMlp(sizes))),
        before_attention(register_module("input_layernorm", RmsNorm(sizes))),
        before_mlp(register_module("post_attention_layernorm", RmsNorm(sizes))) {}

  at::Tensor forward(at::Tensor const& x_BTW, Rotation const& rotate) {
    at::Tensor const attended_BTW = x_BTW + attention(before_attention(x_BTW), rotate);
    return attended_BTW + mlp(before_mlp(attended_BTW));
  }

  LlamaAttention attention;
  LlamaMlp mlp;
  RmsNorm before_attention, before_mlp;
};
TORCH_MODULE(LlamaLayer);

/// All but the head, below the name that Hugging Face gives it: model.layers.0, ...
struct LlamaModelImpl : torch::nn::Module {
  explicit LlamaModelImpl(LlamaSizes const& model_sizes)
      : sizes(model_sizes),
        embeddings(
            register_module("embed_tokens", torch::nn::Embedding(sizes.vocabulary, sizes.width))),
        layers(register_module("layers", torch::nn::ModuleList())),
        norm(register_module("norm", RmsNorm(sizes))) {
    for (std::int64_t i = 0; i < sizes.layers; ++i) layers->push_back(LlamaLayer(sizes));
  }

  at::Tensor forward(at::Tensor const& ids_BT) {
    at::Tensor x_BTW = embeddings(ids_BT);
    Rotation const rotate(sizes, x_BTW);
    for (auto const& layer : *layers) x_BTW = layer->as<LlamaLayer>()->forward(x_BTW, rotate);
    return norm(x_BTW);
  }

  LlamaSizes sizes;
  torch::nn::Embedding embeddings;
  torch::nn::ModuleList layers;
  RmsNorm norm;
};
TORCH_MODULE(LlamaModel);

struct LlamaImpl : torch::nn::Module {
  explicit LlamaImpl(LlamaSizes const& sizes = {})
      : model(register_module("model", LlamaModel(sizes))) {
    if (!sizes.tied) head = register_module("lm_head", linear(sizes.width, sizes.vocabulary));
    at::NoGradGuard const no_gradients;
    for (at::Tensor& each : parameters()) {
      if (each.dim() > 1) each.normal_(0.0, 0.02);  // initializer_range
    }
  }

  /// The logits of the next token at each position, [B, T, V]. Padding on the right changes nothing.
  at::Tensor forward(at::Tensor const& ids_BT) {
    at::Tensor const x_BTW = model(ids_BT);
    return head.is_empty() ? at::linear(x_BTW, model->embeddings->weight) : head(x_BTW);
  }

  LlamaModel model;
  torch::nn::Linear head{nullptr};  ///< empty if tied
};
TORCH_MODULE(Llama);

}  // namespace finetune
