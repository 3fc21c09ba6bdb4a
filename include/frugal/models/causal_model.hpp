// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>
#include <torch/nn/module.h>

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace frugal::models {

class CausalModel;

/// Keys and values of the tokens that a model has read, so that it reads each token once. For one model
/// with the same weights, and one batch of texts. Without gradients.
class KeyValueCache {
 public:
  /// Tokens of each text that have been read.
  std::int64_t tokens() const { return tokens_; }

  /// Forgets all tokens, but keeps the memory for as many.
  void clear() { tokens_ = 0; }

  /// Within a model's pass: adds the keys and values of a layer, [B, G, T, D], behind the tokens that
  /// have been read, and returns those of all.
  std::pair<at::Tensor, at::Tensor> add(std::size_t layer, at::Tensor const& keys_BGTD,
                                        at::Tensor const& values_BGTD);

 private:
  friend class CausalModel;

  /// Before a pass. SettingsError if the tokens are another model's; ShapeError for another number of
  /// texts.
  void begin(CausalModel const& model, std::int64_t texts);

  /// After a pass: one that threw has read nothing.
  void end(std::int64_t read) { tokens_ += read; }

  struct Layer {
    at::Tensor keys_BGTD{}, values_BGTD{};
  };

  std::vector<Layer> layers_;
  CausalModel const* model_ = nullptr;
  std::int64_t texts_ = 0;
  std::int64_t tokens_ = 0;
};

/// A model that predicts the next token of a text from those before it. generate() takes any of these,
/// those of your own included.
class CausalModel : public torch::nn::Module {
 public:
  /// The logits of the next token at each position, [B, T, V]. Padding on the right changes nothing
  /// before it. Padding on the left is not supported.
  at::Tensor forward(at::Tensor const& ids_BT) { return logits(hidden(ids_BT, nullptr)); }

  /// The same for tokens that follow those of the cache, which gets them. Without gradients. Not another
  /// forward(): a module holder calls none that is overloaded.
  at::Tensor decode(at::Tensor const& ids_BT, KeyValueCache& cache);

  /// decode(), but for the logits behind the last token alone: [B, V].
  at::Tensor next(at::Tensor const& ids_BT, KeyValueCache& cache);

  /// The last layer's output, [B, T, W].
  virtual at::Tensor hidden(at::Tensor const& ids_BT, KeyValueCache* cache) = 0;

  /// The head over it.
  virtual at::Tensor logits(at::Tensor const& hidden_BTW) = 0;

  /// Tokens of the longest text.
  virtual std::int64_t positions() const = 0;

 private:
  at::Tensor read(at::Tensor const& ids_BT, KeyValueCache& cache);
};

}  // namespace frugal::models

namespace frugal::detail {

/// Attention of each token to itself and those before it: [B, H, T, D] and keys and values
/// [B, G, S, D], of which the last T are those of the queries.
at::Tensor causal_attention(at::Tensor const& query_BHTD, at::Tensor const& key_BGSD,
                            at::Tensor const& value_BGSD, double dropout);

}  // namespace frugal::detail

#ifndef FRUGAL_COMPILED
#include <frugal/models/causal_model.ipp>
#endif
