// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/cluster/tensor_parallel.hpp>

#include <frugal/inline.hpp>

#include <torch/nn/init.h>

#include <cmath>
#include <limits>

namespace frugal::detail {

FRUGAL_INLINE WholeLinear WholeLinear::drawn(std::int64_t in, std::int64_t out, bool has_bias) {
  WholeLinear whole{.weight = at::empty({out, in})};
  torch::nn::init::kaiming_uniform_(whole.weight, std::sqrt(5.0));
  if (!has_bias) return whole;
  double const bound = 1.0 / std::sqrt(static_cast<double>(in));
  whole.bias = at::empty({out});
  torch::nn::init::uniform_(whole.bias, -bound, bound);
  return whole;
}

FRUGAL_INLINE void require_last_size(at::Tensor const& x, std::int64_t size, char const* where) {
  if (x.dim() > 0 && x.size(-1) == size) [[likely]]
    return;
  throw ModuleError(
      {.what = "the input's last dimension is " +
               (x.dim() > 0 ? std::to_string(x.size(-1)) : std::string("missing")) +
               ", and the layer takes " + std::to_string(size),
       .where = where,
       .why = "a layer takes either the whole input or this rank's shard of it",
       .fix = "Check the sizes, and ColumnOptions::gather and RowOptions::input_is_sharded of the "
              "two layers."});
}

}  // namespace frugal::detail

namespace frugal {

FRUGAL_INLINE at::Tensor ShardedEmbeddingImpl::forward(at::Tensor const& indices) {
  if (group_->size() == 1) return at::embedding(weight, indices);
  std::int64_t const count = words_ / group_->size();
  at::Tensor const own = indices - group_->rank() * count;
  // An index that no rank has stays out of range, so that the look-up refuses it.
  at::Tensor const of_others = (own.lt(0) | own.ge(count)) & indices.ge(0) & indices.lt(words_);
  at::Tensor const found = at::embedding(weight, own.masked_fill(of_others, 0));
  return reduce_from_group(found.masked_fill(of_others.unsqueeze(-1), 0), group_);
}

FRUGAL_INLINE ShardedDropoutImpl::ShardedDropoutImpl(double p, TensorGroup of, std::int64_t dim)
    : p_(p), dim_(dim), group_(std::move(of)) {
  if (p >= 0 && p <= 1) return;
  throw SettingsError({.what = "a dropout probability of " + std::to_string(p),
                       .where = "ShardedDropout",
                       .why = "a probability is from 0 to 1",
                       .fix = "Correct it."});
}

FRUGAL_INLINE at::Tensor ShardedDropoutImpl::forward(at::Tensor const& x) {
  if (p_ == 0 || !is_training()) return x;
  std::int64_t const ranks = group_->size(), own = x.size(dim_);
  std::vector<std::int64_t> whole = x.sizes().vec();
  whole[static_cast<std::size_t>(at::maybe_wrap_dim(dim_, x.dim()))] *= ranks;
  at::Tensor const mask = at::dropout(at::ones(whole, x.options().requires_grad(false)), p_, true);
  return x * mask.narrow(dim_, group_->rank() * own, own);
}

FRUGAL_INLINE ShardedAttentionImpl::ShardedAttentionImpl(std::int64_t width, std::int64_t heads,
                                                         TensorGroup of, AttentionOptions options)
    : width_(width), heads_(heads), options_(options), group_(std::move(of)) {
  detail::share_of(heads, group_, "ShardedAttention", "heads");
  if (width <= 0 || width % heads != 0) {
    throw SettingsError(
        {.what = "a width of " + std::to_string(width) + " and " + std::to_string(heads) + " heads",
         .where = "ShardedAttention",
         .why = "each head has width / heads features",
         .fix = "Use a width that is a multiple of the number of heads."});
  }
  ShardedAttentionImpl::reset();
}

FRUGAL_INLINE at::Tensor ShardedAttentionImpl::forward(at::Tensor const& x) {
  if (x.dim() != 3) {
    throw ModuleError({.what = "an input of " + std::to_string(x.dim()) + " dimensions",
                       .where = "ShardedAttention",
                       .why = "it takes [batch, length, width]",
                       .fix = "Reshape the input."});
  }
  at::Tensor const copied = copy_to_group(x, group_);
  at::Tensor const q = by_heads(query->shard(copied));
  at::Tensor const k = by_heads(key->shard(copied));
  at::Tensor const v = by_heads(value->shard(copied));
  at::Tensor const seen =
      options_.dropout > 0 && is_training()
          ? with_dropout(q, k, v)
          : at::scaled_dot_product_attention(q, k, v, std::nullopt, 0.0, options_.causal);
  return out(seen.transpose(1, 2).flatten(2));
}

FRUGAL_INLINE at::Tensor ShardedAttentionImpl::with_dropout(at::Tensor const& q,
                                                            at::Tensor const& k,
                                                            at::Tensor const& v) {
  double const scale = 1.0 / std::sqrt(static_cast<double>(width_ / heads_));
  at::Tensor scores = at::matmul(q, k.transpose(-2, -1)) * scale;
  if (options_.causal) {
    std::int64_t const length = q.size(-2);
    at::Tensor const later = at::ones({length, length}, q.options().dtype(at::kBool)).triu(1);
    scores = scores.masked_fill(later, -std::numeric_limits<double>::infinity());
  }
  return at::matmul(dropout(scores.softmax(-1)).to(v.scalar_type()), v);
}

}  // namespace frugal

namespace frugal::detail {

FRUGAL_INLINE at::Tensor whole_of(Communicator& group, at::Tensor const& mine,
                                  TensorPart const& part) {
  if (part.count * group.size() != part.whole_count()) {
    throw ModuleError({.what = "a shard of " + part.text() + " elements",
                       .where = "a group of " + std::to_string(group.size()) + " processes",
                       .why = "the module was made for a group of another size",
                       .fix = "Give the group that the module's layers have (Grid::tensor)."});
  }
  at::NoGradGuard const no_gradients;
  at::Tensor own = in_memory_order(mine.detach());
  at::Tensor whole =
      at::empty_strided(part.sizes, part.strides, mine.options().requires_grad(false));
  at::Tensor elements = in_memory_order(whole);
  group.collect(elements, own, "the shards of a weight");
  return whole;
}

}  // namespace frugal::detail
