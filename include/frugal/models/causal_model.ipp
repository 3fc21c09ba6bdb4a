// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/models/causal_model.hpp>

#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <optional>
#include <string>

#include <frugal/error.hpp>
#include <frugal/inline.hpp>
#include <frugal/models/parts.hpp>

namespace frugal::models {

FRUGAL_INLINE std::pair<at::Tensor, at::Tensor> KeyValueCache::add(std::size_t layer,
                                                                   at::Tensor const& keys_BGTD,
                                                                   at::Tensor const& values_BGTD) {
  if (layers_.size() <= layer) layers_.resize(layer + 1);
  std::int64_t const all = tokens_ + keys_BGTD.size(2);
  auto const put = [&](at::Tensor& kept, at::Tensor const& added) {
    bool const fits = kept.defined() && kept.size(2) >= all && kept.size(0) == added.size(0) &&
                      kept.size(1) == added.size(1) && kept.device() == added.device() &&
                      kept.scalar_type() == added.scalar_type();
    if (!fits) {
      auto sizes = added.sizes().vec();
      sizes[2] = std::max<std::int64_t>(2 * all, 64);  // doubled: a token is copied twice at most
      at::Tensor const grown = at::empty(sizes, added.options());
      if (tokens_ > 0) grown.narrow(2, 0, tokens_).copy_(kept.narrow(2, 0, tokens_));
      kept = grown;
    }
    kept.narrow(2, tokens_, added.size(2)).copy_(added);
    return kept.narrow(2, 0, all);
  };
  return {put(layers_[layer].keys_BGTD, keys_BGTD), put(layers_[layer].values_BGTD, values_BGTD)};
}

FRUGAL_INLINE void KeyValueCache::begin(CausalModel const& model, std::int64_t texts) {
  if (tokens_ == 0) {
    model_ = &model;
    texts_ = texts;
    return;
  }
  if (model_ != &model) {
    throw SettingsError({.what = "the tokens of the cache were read by another model",
                         .where = "KeyValueCache",
                         .why = "keys and values are those of one model's weights",
                         .fix = "Use a cache for each model, or clear() it."});
  }
  if (texts_ != texts) {
    throw ShapeError({.what = "a batch of " + std::to_string(texts) + " texts meets a cache of " +
                              std::to_string(texts_),
                      .where = "KeyValueCache",
                      .why = "each text goes on from its own tokens",
                      .fix = "Use a cache for each batch, or clear() it."});
  }
}

FRUGAL_INLINE at::Tensor CausalModel::read(at::Tensor const& ids_BT, KeyValueCache& cache) {
  detail::require_ids(ids_BT, cache.tokens(), positions(), "KeyValueCache");
  cache.begin(*this, ids_BT.size(0));
  at::Tensor hidden_BTW = hidden(ids_BT, &cache);
  cache.end(ids_BT.size(1));
  return hidden_BTW;
}

FRUGAL_INLINE at::Tensor CausalModel::decode(at::Tensor const& ids_BT, KeyValueCache& cache) {
  at::NoGradGuard const no_gradients;
  return logits(read(ids_BT, cache));
}

FRUGAL_INLINE at::Tensor CausalModel::next(at::Tensor const& ids_BT, KeyValueCache& cache) {
  at::NoGradGuard const no_gradients;
  at::Tensor const hidden_BTW = read(ids_BT, cache);
  return logits(hidden_BTW.narrow(1, hidden_BTW.size(1) - 1, 1)).select(1, 0);
}

}  // namespace frugal::models

namespace frugal::detail {

FRUGAL_INLINE at::Tensor causal_attention(at::Tensor const& query_BHTD, at::Tensor const& key_BGSD,
                                          at::Tensor const& value_BGSD, double dropout) {
  std::int64_t const queries = query_BHTD.size(2), keys = key_BGSD.size(2);
  std::optional<at::Tensor> mask_TS;
  if (queries > 1 &&
      keys > queries) {  // is_causal would put the first query before all keys but one
    mask_TS = at::ones({queries, keys}, query_BHTD.options().dtype(at::kBool)).tril(keys - queries);
  }
  return at::scaled_dot_product_attention(
      query_BHTD, key_BGSD, value_BGSD, mask_TS, dropout, /*is_causal=*/queries == keys,
      /*scale=*/std::nullopt, /*enable_gqa=*/query_BHTD.size(1) != key_BGSD.size(1));
}

}  // namespace frugal::detail
