// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/models/bert.hpp>

#include <string>

#include <frugal/core/source/batch.hpp>
#include <frugal/error.hpp>
#include <frugal/inline.hpp>
#include <frugal/models/parts.hpp>
#include <frugal/policy/recompute/segments.hpp>

namespace frugal::detail {

FRUGAL_INLINE models::BertOptions const& checked(models::BertOptions const& options) {
  require_positive({{"the vocabulary", options.vocabulary},
                    {"the width", options.width},
                    {"the number of layers", options.layers},
                    {"the number of heads", options.heads},
                    {"the intermediate width", options.intermediate},
                    {"the number of positions", options.positions},
                    {"the number of types", options.types}},
                   "Bert");
  require_divides(options.heads, options.width, "Bert");
  std::int64_t const padding = options.padding.value_or(0);
  if (padding >= 0 && padding < options.vocabulary) return options;
  throw SettingsError({.what = "the id of the padding is " + std::to_string(padding),
                       .where = "BertOptions::padding",
                       .why = "the vocabulary has " + std::to_string(options.vocabulary) + " ids",
                       .fix = "Give one of them, or std::nullopt for a model without padding."});
}

FRUGAL_INLINE torch::nn::LayerNorm bert_norm(models::BertOptions const& options) {
  return torch::nn::LayerNorm(torch::nn::LayerNormOptions({options.width}).eps(options.eps));
}

/// [B, T] of 0 and 1 to [B, 1, 1, T] of true and false; undefined stays so.
FRUGAL_INLINE at::Tensor bert_mask(at::Tensor const& mask_BT, at::Tensor const& ids_BT) {
  if (!mask_BT.defined()) return {};
  if (mask_BT.sizes() != ids_BT.sizes()) {
    throw ShapeError({.what = "a mask of shape " + shape_text(mask_BT) +
                              " meets token ids of shape " + shape_text(ids_BT),
                      .where = "Bert",
                      .why = "it says of each token whether it is one",
                      .fix = "Make it of the ids: ids != padding."});
  }
  if (mask_BT.is_floating_point()) {
    throw DtypeError(
        {.what = std::string("the mask is of type ") + c10::toString(mask_BT.scalar_type()),
         .where = "Bert",
         .why = "it is 1 for tokens and 0 for padding. One that is added to scores, of "
                "0 and minus infinity, would say the opposite",
         .fix = "Use a mask of integers or bool."});
  }
  return mask_BT.to(at::kBool).unsqueeze(1).unsqueeze(1);
}

}  // namespace frugal::detail

namespace frugal::models {

FRUGAL_INLINE BertOptions BertOptions::from(ModelConfig const& config) {
  detail::require_config(config, "model_type", "bert");
  detail::require_config(config, "hidden_act", "gelu");
  detail::require_config(config, "position_embedding_type", "absolute");
  detail::require_config_off(config, "is_decoder");
  detail::require_config_off(config, "add_cross_attention");
  BertOptions const standard;
  BertOptions options{
      .vocabulary = config.get<std::int64_t>("vocab_size"),
      .width = config.get<std::int64_t>("hidden_size"),
      .layers = config.get<std::int64_t>("num_hidden_layers"),
      .heads = config.get<std::int64_t>("num_attention_heads"),
      .intermediate = config.get<std::int64_t>("intermediate_size"),
      .positions = config.get<std::int64_t>("max_position_embeddings", standard.positions),
      .types = config.get<std::int64_t>("type_vocab_size", standard.types),
      .padding = config.get<std::int64_t>("pad_token_id", 0),
      .eps = config.get<double>("layer_norm_eps", standard.eps),
      .dropout = config.get<double>("hidden_dropout_prob", standard.dropout),
      .attention_dropout =
          config.get<double>("attention_probs_dropout_prob", standard.attention_dropout),
      .deviation = config.get<double>("initializer_range", standard.deviation)};
  if (config.has("classifier_dropout")) {
    options.classifier_dropout = config.get<double>("classifier_dropout");
  }
  if (config.is_null("pad_token_id")) options.padding.reset();
  return options;
}

FRUGAL_INLINE BertEmbeddingsImpl::BertEmbeddingsImpl(BertOptions const& options)
    : words(register_module(
          "word_embeddings",
          torch::nn::Embedding(torch::nn::EmbeddingOptions(options.vocabulary, options.width)
                                   .padding_idx(options.padding)))),
      positions(register_module("position_embeddings",
                                torch::nn::Embedding(options.positions, options.width))),
      types(register_module("token_type_embeddings",
                            torch::nn::Embedding(options.types, options.width))),
      norm(register_module("LayerNorm", detail::bert_norm(options))),
      dropout(register_module("dropout", torch::nn::Dropout(options.dropout))) {}

FRUGAL_INLINE at::Tensor BertEmbeddingsImpl::forward(at::Tensor const& ids_BT,
                                                     at::Tensor const& types_BT) {
  detail::require_ids(ids_BT, 0, positions->weight.size(0), "Bert");
  at::Tensor const places_1T =
      at::arange(ids_BT.size(1), ids_BT.options().dtype(at::kLong)).unsqueeze(0);
  at::Tensor const segments_BT = types_BT.defined() ? types_BT : at::zeros_like(ids_BT);
  at::Tensor const sum_BTW = detail::embedded(words, ids_BT, "Bert") +
                             detail::embedded(types, segments_BT, "Bert, types of tokens") +
                             positions(places_1T);
  return dropout(norm(sum_BTW));
}

FRUGAL_INLINE BertSelfAttentionImpl::BertSelfAttentionImpl(BertOptions const& options)
    : query(register_module("query", torch::nn::Linear(options.width, options.width))),
      key(register_module("key", torch::nn::Linear(options.width, options.width))),
      value(register_module("value", torch::nn::Linear(options.width, options.width))),
      head_width(options.width / options.heads),
      dropout(options.attention_dropout) {}

FRUGAL_INLINE at::Tensor BertSelfAttentionImpl::forward(at::Tensor const& x_BTW,
                                                        at::Tensor const& attend_B11T) {
  auto const heads = [&](torch::nn::Linear const& layer) {
    return detail::heads_of(detail::linear(layer, x_BTW), head_width);
  };
  at::Tensor const mixed_BHTD = at::scaled_dot_product_attention(
      heads(query), heads(key), heads(value),
      attend_B11T.defined() ? std::optional(attend_B11T) : std::nullopt,
      is_training() ? dropout : 0.0);
  return mixed_BHTD.transpose(1, 2).flatten(2);
}

FRUGAL_INLINE BertOutputImpl::BertOutputImpl(std::int64_t inputs, BertOptions const& options)
    : dense(register_module("dense", torch::nn::Linear(inputs, options.width))),
      norm(register_module("LayerNorm", detail::bert_norm(options))),
      dropout(register_module("dropout", torch::nn::Dropout(options.dropout))) {}

FRUGAL_INLINE at::Tensor BertOutputImpl::forward(at::Tensor const& x,
                                                 at::Tensor const& came_in_BTW) {
  return norm(dropout(detail::linear(dense, x)) + came_in_BTW);
}

FRUGAL_INLINE BertAttentionImpl::BertAttentionImpl(BertOptions const& options)
    : self(register_module("self", BertSelfAttention(options))),
      output(register_module("output", BertOutput(options.width, options))) {}

FRUGAL_INLINE at::Tensor BertAttentionImpl::forward(at::Tensor const& x_BTW,
                                                    at::Tensor const& attend_B11T) {
  return output(self(x_BTW, attend_B11T), x_BTW);
}

FRUGAL_INLINE BertIntermediateImpl::BertIntermediateImpl(BertOptions const& options)
    : dense(register_module("dense", torch::nn::Linear(options.width, options.intermediate))) {}

FRUGAL_INLINE at::Tensor BertIntermediateImpl::forward(at::Tensor const& x_BTW) {
  return at::gelu(detail::linear(dense, x_BTW));
}

FRUGAL_INLINE BertLayerImpl::BertLayerImpl(BertOptions const& options)
    : attention(register_module("attention", BertAttention(options))),
      intermediate(register_module("intermediate", BertIntermediate(options))),
      output(register_module("output", BertOutput(options.intermediate, options))) {}

FRUGAL_INLINE at::Tensor BertLayerImpl::forward(at::Tensor const& x_BTW,
                                                at::Tensor const& attend_B11T) {
  at::Tensor const attended_BTW = attention(x_BTW, attend_B11T);
  return output(intermediate(attended_BTW), attended_BTW);
}

FRUGAL_INLINE BertEncoderImpl::BertEncoderImpl(BertOptions const& options)
    : layers(register_module("layer", torch::nn::ModuleList())) {
  for (std::int64_t i = 0; i < options.layers; ++i) layers->push_back(BertLayer(options));
}

FRUGAL_INLINE BertPoolerImpl::BertPoolerImpl(BertOptions const& options)
    : dense(register_module("dense", torch::nn::Linear(options.width, options.width))) {}

FRUGAL_INLINE at::Tensor BertPoolerImpl::forward(at::Tensor const& hidden_BTW) {
  return detail::linear(dense, hidden_BTW.select(1, 0)).tanh();
}

FRUGAL_INLINE BertImpl::BertImpl(BertOptions const& options)
    : embeddings(register_module("embeddings", BertEmbeddings(detail::checked(options)))),
      encoder(register_module("encoder", BertEncoder(options))) {
  if (options.pooler) pooler = register_module("pooler", BertPooler(options));
  detail::draw_normal(*this, options.deviation);
}

FRUGAL_INLINE at::Tensor BertImpl::forward(at::Tensor const& ids_BT, at::Tensor const& mask_BT,
                                           at::Tensor const& types_BT) {
  at::Tensor const x_BTW = embeddings(ids_BT, types_BT);
  return each(
      encoder->layers, x_BTW,
      [attend_B11T = detail::bert_mask(mask_BT, ids_BT)](auto& layer, at::Tensor const& in_BTW) {
        return layer->template as<BertLayer>()->forward(in_BTW, attend_B11T);
      });
}

FRUGAL_INLINE at::Tensor BertImpl::pooled(at::Tensor const& hidden_BTW) {
  if (!pooler.is_empty()) return pooler(hidden_BTW);
  throw ModuleError({.what = "the model has no pooler",
                     .where = "Bert",
                     .why = "BertOptions::pooler is false",
                     .fix = "Set it to true, or take a mean over the tokens."});
}

FRUGAL_INLINE BertForSequenceClassificationImpl::BertForSequenceClassificationImpl(
    BertOptions const& options, std::int64_t classes)
    : bert(register_module("bert", Bert(options))),
      dropout(register_module(
          "dropout", torch::nn::Dropout(options.classifier_dropout.value_or(options.dropout)))),
      classifier(register_module("classifier", torch::nn::Linear(options.width, classes))) {
  detail::require_positive({{"the number of classes", classes}}, "Bert");
  detail::draw_normal(*classifier, options.deviation);
}

FRUGAL_INLINE at::Tensor BertForSequenceClassificationImpl::forward(at::Tensor const& ids_BT,
                                                                    at::Tensor const& mask_BT,
                                                                    at::Tensor const& types_BT) {
  return detail::linear(classifier, dropout(bert->pooled(bert(ids_BT, mask_BT, types_BT))));
}

FRUGAL_INLINE at::Tensor sentence_embedding(at::Tensor const& hidden_BTW,
                                            at::Tensor const& mask_BT) {
  at::Tensor const weight_BT1 = mask_BT.unsqueeze(2).to(hidden_BTW.scalar_type());
  at::Tensor const mean_BW = (hidden_BTW * weight_BT1).sum(1) / weight_BT1.sum(1).clamp_min(1e-9);
  return mean_BW / mean_BW.norm(2, 1, /*keepdim=*/true).clamp_min(1e-12);
}

}  // namespace frugal::models
