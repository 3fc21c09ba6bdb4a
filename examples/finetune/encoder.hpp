// SPDX-License-Identifier: Apache-2.0
// A BERT encoder for embeddings of texts. Its tensors have the names of the Hugging Face layout, so that
// load_weights() reads such a model's file without a map.
//
// Shapes: B texts, T tokens of each, W width, H heads, D width of a head, V words.
#pragma once

#include <ATen/ATen.h>
#include <torch/nn/module.h>
#include <torch/nn/modules/container/modulelist.h>
#include <torch/nn/modules/dropout.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/normalization.h>
#include <torch/nn/pimpl.h>

#include <cstdint>
#include <optional>
#include <vector>

namespace finetune {

/// The numbers of a model's config.json; the defaults are those of all-MiniLM-L6-v2.
struct EncoderSizes {
  std::int64_t vocabulary = 30522;   ///< vocab_size
  std::int64_t width = 384;          ///< hidden_size
  std::int64_t layers = 6;           ///< num_hidden_layers
  std::int64_t heads = 12;           ///< num_attention_heads
  std::int64_t intermediate = 1536;  ///< intermediate_size
  std::int64_t positions = 512;      ///< max_position_embeddings
  std::int64_t types = 2;            ///< type_vocab_size
  std::int64_t padding = 0;          ///< pad_token_id
  double eps = 1e-12;                ///< layer_norm_eps
  double dropout = 0.1;              ///< hidden_dropout_prob and attention_probs_dropout_prob

  std::int64_t head_width() const { return width / heads; }
  torch::nn::LayerNormOptions norm() const { return torch::nn::LayerNormOptions({width}).eps(eps); }
};

/// Ids to the sum of the embeddings of word, position and segment.
struct EncoderEmbeddingsImpl : torch::nn::Module {
  explicit EncoderEmbeddingsImpl(EncoderSizes const& sizes)
      : words(register_module(
            "word_embeddings",
            torch::nn::Embedding(torch::nn::EmbeddingOptions(sizes.vocabulary, sizes.width)
                                     .padding_idx(sizes.padding)))),
        positions(register_module("position_embeddings",
                                  torch::nn::Embedding(sizes.positions, sizes.width))),
        types(register_module("token_type_embeddings",
                              torch::nn::Embedding(sizes.types, sizes.width))),
        norm(register_module("LayerNorm", torch::nn::LayerNorm(sizes.norm()))),
        dropout(register_module("dropout", torch::nn::Dropout(sizes.dropout))),
        position_ids(register_buffer("position_ids",
                                     at::arange(sizes.positions, at::kLong).view({1, -1}))) {}

  at::Tensor forward(at::Tensor const& ids_BT) {
    at::Tensor const places_1T = position_ids.narrow(1, 0, ids_BT.size(1));
    at::Tensor const sum_BTW = words(ids_BT) + types(at::zeros_like(ids_BT)) + positions(places_1T);
    return dropout(norm(sum_BTW));
  }

  torch::nn::Embedding words, positions, types;
  torch::nn::LayerNorm norm;
  torch::nn::Dropout dropout;
  at::Tensor position_ids;
};
TORCH_MODULE(EncoderEmbeddings);

struct SelfAttentionImpl : torch::nn::Module {
  explicit SelfAttentionImpl(EncoderSizes const& sizes)
      : query(register_module("query", torch::nn::Linear(sizes.width, sizes.width))),
        key(register_module("key", torch::nn::Linear(sizes.width, sizes.width))),
        value(register_module("value", torch::nn::Linear(sizes.width, sizes.width))),
        head_width(sizes.head_width()),
        dropout(sizes.dropout) {}

  /// `attend_B11T`: true for the tokens that are looked at; undefined for all.
  at::Tensor forward(at::Tensor const& x_BTW, at::Tensor const& attend_B11T) {
    at::Tensor const mixed_BHTD = at::scaled_dot_product_attention(
        heads(query(x_BTW)), heads(key(x_BTW)), heads(value(x_BTW)),
        attend_B11T.defined() ? std::optional(attend_B11T) : std::nullopt,
        is_training() ? dropout : 0.0);
    return mixed_BHTD.transpose(1, 2).flatten(2);
  }

  // The number of heads is that of the layer's output, so that it may lose some by pruning.
  at::Tensor heads(at::Tensor const& x_BTW) const {
    return x_BTW.unflatten(2, {-1, head_width}).transpose(1, 2);
  }

  torch::nn::Linear query, key, value;
  std::int64_t head_width;
  double dropout;
};
TORCH_MODULE(SelfAttention);

/// Linear, dropout, and the norm of the sum with what came in: the end of either half of a layer.
struct AddAndNormImpl : torch::nn::Module {
  AddAndNormImpl(std::int64_t inputs, EncoderSizes const& sizes)
      : dense(register_module("dense", torch::nn::Linear(inputs, sizes.width))),
        norm(register_module("LayerNorm", torch::nn::LayerNorm(sizes.norm()))),
        dropout(register_module("dropout", torch::nn::Dropout(sizes.dropout))) {}

  at::Tensor forward(at::Tensor const& x, at::Tensor const& came_in_BTW) {
    return norm(dropout(dense(x)) + came_in_BTW);
  }

  torch::nn::Linear dense;
  torch::nn::LayerNorm norm;
  torch::nn::Dropout dropout;
};
TORCH_MODULE(AddAndNorm);

struct AttentionImpl : torch::nn::Module {
  explicit AttentionImpl(EncoderSizes const& sizes)
      : self(register_module("self", SelfAttention(sizes))),
        output(register_module("output", AddAndNorm(sizes.width, sizes))) {}

  at::Tensor forward(at::Tensor const& x_BTW, at::Tensor const& attend_B11T) {
    return output(self(x_BTW, attend_B11T), x_BTW);
  }

  SelfAttention self;
  AddAndNorm output;
};
TORCH_MODULE(Attention);

struct IntermediateImpl : torch::nn::Module {
  explicit IntermediateImpl(EncoderSizes const& sizes)
      : dense(register_module("dense", torch::nn::Linear(sizes.width, sizes.intermediate))) {}
  at::Tensor forward(at::Tensor const& x_BTW) { return at::gelu(dense(x_BTW)); }

  torch::nn::Linear dense;
};
TORCH_MODULE(Intermediate);

struct EncoderLayerImpl : torch::nn::Module {
  explicit EncoderLayerImpl(EncoderSizes const& sizes)
      : attention(register_module("attention", Attention(sizes))),
        intermediate(register_module("intermediate", Intermediate(sizes))),
        output(register_module("output", AddAndNorm(sizes.intermediate, sizes))) {}

  at::Tensor forward(at::Tensor const& x_BTW, at::Tensor const& attend_B11T) {
    at::Tensor const attended_BTW = attention(x_BTW, attend_B11T);
    return output(intermediate(attended_BTW), attended_BTW);
  }

  Attention attention;
  Intermediate intermediate;
  AddAndNorm output;
};
TORCH_MODULE(EncoderLayer);

/// The layers, below the name that Hugging Face gives them: encoder.layer.0, encoder.layer.1, ...
struct EncoderStackImpl : torch::nn::Module {
  explicit EncoderStackImpl(EncoderSizes const& sizes)
      : layers(register_module("layer", torch::nn::ModuleList())) {
    for (std::int64_t i = 0; i < sizes.layers; ++i) layers->push_back(EncoderLayer(sizes));
  }

  torch::nn::ModuleList layers;
};
TORCH_MODULE(EncoderStack);

/// The module behind BERT's first token. Sentence embeddings do not use it; its weights are in the file.
struct PoolerImpl : torch::nn::Module {
  explicit PoolerImpl(EncoderSizes const& sizes)
      : dense(register_module("dense", torch::nn::Linear(sizes.width, sizes.width))) {}
  at::Tensor forward(at::Tensor const& x_BTW) { return dense(x_BTW.select(1, 0)).tanh(); }

  torch::nn::Linear dense;
};
TORCH_MODULE(Pooler);

struct EncoderImpl : torch::nn::Module {
  explicit EncoderImpl(EncoderSizes const& sizes = {})
      : embeddings(register_module("embeddings", EncoderEmbeddings(sizes))),
        encoder(register_module("encoder", EncoderStack(sizes))),
        pooler(register_module("pooler", Pooler(sizes))) {}

  /// The last layer's output, [B, T, W]. `mask_BT` is 1 for tokens and 0 for padding; undefined if there
  /// is no padding, which is faster.
  at::Tensor hidden(at::Tensor const& ids_BT, at::Tensor const& mask_BT = {}) {
    at::Tensor const attend_B11T =
        mask_BT.defined() ? mask_BT.to(at::kBool).unsqueeze(1).unsqueeze(1) : at::Tensor();
    at::Tensor x_BTW = embeddings(ids_BT);
    for (auto const& layer : *encoder->layers) {
      x_BTW = layer->as<EncoderLayer>()->forward(x_BTW, attend_B11T);
    }
    return x_BTW;
  }

  /// An embedding of length 1 for each text, [B, W]: the mean over its tokens, normalized. The product
  /// of two is their cosine similarity.
  at::Tensor forward(at::Tensor const& ids_BT, at::Tensor const& mask_BT) {
    at::Tensor const x_BTW = hidden(ids_BT, mask_BT);
    at::Tensor const weight_BT1 = mask_BT.unsqueeze(2).to(x_BTW.scalar_type());
    at::Tensor const mean_BW = (x_BTW * weight_BT1).sum(1) / weight_BT1.sum(1).clamp_min(1e-9);
    return mean_BW / mean_BW.norm(2, 1, /*keepdim=*/true).clamp_min(1e-12);
  }

  EncoderEmbeddings embeddings;
  EncoderStack encoder;
  Pooler pooler;
};
TORCH_MODULE(Encoder);

}  // namespace finetune
