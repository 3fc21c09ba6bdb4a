// SPDX-License-Identifier: Apache-2.0
#pragma once

// Shapes: B texts, T tokens of each, W width, H heads, D width of a head.

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

#include <frugal/core/source/fields.hpp>
#include <frugal/model/model_config.hpp>

namespace frugal::detail {

/// A named tensor of a map, or of a batch with fields; undefined if it has none of that name.
template <class B>
at::Tensor named_tensor(B const& batch, char const* name) {
  if constexpr (Keyed<B>) {
    auto const found = batch.find(typename B::key_type(name));
    return found == batch.end() ? at::Tensor() : found->second;
  } else {
    return named_tensor(batch.fields, name);
  }
}

/// A batch that may have masks and segments: FieldsBatch, PaddedBatch, or a map of tensors.
template <class B>
concept NamesTensors =
    HasData<B> && (Keyed<B> || requires(B const& batch) { batch.fields.find("")->second; });

/// The output of a BERT for a batch: with `attention_mask`, or else the mask of a PaddedBatch, and with
/// `token_type_ids`, where the batch has them.
template <class Model, NamesTensors B>
at::Tensor bert_output(Model& model, B const& batch) {
  at::Tensor mask_BT = named_tensor(batch, "attention_mask");
  if constexpr (requires { batch.mask.dim(); }) {
    if (!mask_BT.defined()) mask_BT = batch.mask;
  }
  return model.forward(batch_data(batch), mask_BT, named_tensor(batch, "token_type_ids"));
}

}  // namespace frugal::detail

namespace frugal::models {

/// The numbers of a model's config.json; the defaults are those of bert-base-uncased.
struct BertOptions {
  std::int64_t vocabulary = 30522;   ///< vocab_size
  std::int64_t width = 768;          ///< hidden_size
  std::int64_t layers = 12;          ///< num_hidden_layers
  std::int64_t heads = 12;           ///< num_attention_heads
  std::int64_t intermediate = 3072;  ///< intermediate_size
  std::int64_t positions = 512;      ///< max_position_embeddings
  std::int64_t types = 2;            ///< type_vocab_size
  std::optional<std::int64_t> padding =
      0;                 ///< pad_token_id: its embedding is not trained; none if it is null
  double eps = 1e-12;    ///< layer_norm_eps
  double dropout = 0.1;  ///< hidden_dropout_prob
  double attention_dropout = 0.1;              ///< attention_probs_dropout_prob
  std::optional<double> classifier_dropout{};  ///< default: `dropout`
  double deviation = 0.02;                     ///< initializer_range, of the first weights
  bool pooler = true;                          ///< whether the model has a pooler

  /// Of a config.json. SettingsError if the model computes what Bert does not.
  static BertOptions from(ModelConfig const& config);
};

/// Ids to the sum of the embeddings of word, position and segment.
struct BertEmbeddingsImpl : torch::nn::Module {
  explicit BertEmbeddingsImpl(BertOptions const& options);
  at::Tensor forward(at::Tensor const& ids_BT, at::Tensor const& types_BT = {});

  torch::nn::Embedding words, positions, types;
  torch::nn::LayerNorm norm;
  torch::nn::Dropout dropout;
};
TORCH_MODULE(BertEmbeddings);

struct BertSelfAttentionImpl : torch::nn::Module {
  explicit BertSelfAttentionImpl(BertOptions const& options);
  /// `attend_B11T`: true for the tokens that are looked at; undefined for all.
  at::Tensor forward(at::Tensor const& x_BTW, at::Tensor const& attend_B11T);

  torch::nn::Linear query, key, value;
  std::int64_t head_width;
  double dropout;
};
TORCH_MODULE(BertSelfAttention);

/// Linear, dropout, and the norm of the sum with what came in: the end of either half of a layer.
struct BertOutputImpl : torch::nn::Module {
  BertOutputImpl(std::int64_t inputs, BertOptions const& options);
  at::Tensor forward(at::Tensor const& x, at::Tensor const& came_in_BTW);

  torch::nn::Linear dense;
  torch::nn::LayerNorm norm;
  torch::nn::Dropout dropout;
};
TORCH_MODULE(BertOutput);

struct BertAttentionImpl : torch::nn::Module {
  explicit BertAttentionImpl(BertOptions const& options);
  at::Tensor forward(at::Tensor const& x_BTW, at::Tensor const& attend_B11T);

  BertSelfAttention self;
  BertOutput output;
};
TORCH_MODULE(BertAttention);

struct BertIntermediateImpl : torch::nn::Module {
  explicit BertIntermediateImpl(BertOptions const& options);
  at::Tensor forward(at::Tensor const& x_BTW);

  torch::nn::Linear dense;
};
TORCH_MODULE(BertIntermediate);

struct BertLayerImpl : torch::nn::Module {
  explicit BertLayerImpl(BertOptions const& options);
  at::Tensor forward(at::Tensor const& x_BTW, at::Tensor const& attend_B11T);

  BertAttention attention;
  BertIntermediate intermediate;
  BertOutput output;
};
TORCH_MODULE(BertLayer);

/// The layers, below the name that Hugging Face gives them: encoder.layer.0, encoder.layer.1, ...
struct BertEncoderImpl : torch::nn::Module {
  explicit BertEncoderImpl(BertOptions const& options);

  torch::nn::ModuleList layers;
};
TORCH_MODULE(BertEncoder);

/// The module behind BERT's first token.
struct BertPoolerImpl : torch::nn::Module {
  explicit BertPoolerImpl(BertOptions const& options);
  at::Tensor forward(at::Tensor const& hidden_BTW);

  torch::nn::Linear dense;
};
TORCH_MODULE(BertPooler);

/// Token ids [B, T] to the last layer's output, [B, T, W]. Its tensors have the names of transformers'
/// BertModel.
///
///     Bert encoder(BertOptions::from(ModelConfig::read("all-minilm")));
///     load_weights(encoder, "all-minilm", {.allow_unexpected = {"*position_ids"}});
struct BertImpl : torch::nn::Module {
  explicit BertImpl(BertOptions const& options = {});

  /// `mask_BT` is 1 for tokens and 0 for padding, of integers or bool; undefined if there is no padding,
  /// which is faster. `types_BT` says which segment a token is of; undefined: the first.
  at::Tensor forward(at::Tensor const& ids_BT, at::Tensor const& mask_BT = {},
                     at::Tensor const& types_BT = {});

  /// The same of a batch: its `attention_mask`, or else the mask of a PaddedBatch, and its
  /// `token_type_ids`, where it has them.
  template <detail::NamesTensors B>
  at::Tensor forward_batch(B const& batch) {
    return detail::bert_output(*this, batch);
  }

  /// The pooler's output for that of forward(), [B, W]. ModuleError without a pooler.
  at::Tensor pooled(at::Tensor const& hidden_BTW);

  BertEmbeddings embeddings;
  BertEncoder encoder;
  BertPooler pooler{nullptr};  ///< empty without BertOptions::pooler
};
TORCH_MODULE(Bert);

/// Token ids to logits [B, classes], by a head over the pooler's output. Its tensors have the names of
/// transformers' BertForSequenceClassification.
struct BertForSequenceClassificationImpl : torch::nn::Module {
  BertForSequenceClassificationImpl(BertOptions const& options, std::int64_t classes);
  at::Tensor forward(at::Tensor const& ids_BT, at::Tensor const& mask_BT = {},
                     at::Tensor const& types_BT = {});
  template <detail::NamesTensors B>
  at::Tensor forward_batch(B const& batch) {
    return detail::bert_output(*this, batch);
  }

  Bert bert;
  torch::nn::Dropout dropout;
  torch::nn::Linear classifier;
};
TORCH_MODULE(BertForSequenceClassification);

/// An embedding of length 1 for each text, [B, W]: the mean over its tokens, normalized, as
/// sentence-transformers does. The product of two is their cosine similarity.
at::Tensor sentence_embedding(at::Tensor const& hidden_BTW, at::Tensor const& mask_BT);

}  // namespace frugal::models

#ifndef FRUGAL_COMPILED
#include <frugal/models/bert.ipp>
#endif
