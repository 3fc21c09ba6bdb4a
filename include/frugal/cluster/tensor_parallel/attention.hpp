// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>
#include <torch/nn/cloneable.h>
#include <torch/nn/pimpl.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <ostream>
#include <string>
#include <utility>

#include <frugal/cluster/tensor_parallel/collectives.hpp>
#include <frugal/cluster/tensor_parallel/dropout.hpp>
#include <frugal/cluster/tensor_parallel/linear.hpp>
#include <frugal/error.hpp>

namespace frugal {

struct AttentionOptions {
  bool bias = true;
  bool causal = false;  ///< a position sees those before it, and itself
  double dropout = 0;   ///< probability, of the attention weights in training
};

/// Multi-head self-attention whose heads are cut over the processes of a group: query, key and value
/// are ColumnLinear layers by heads, the output a RowLinear.
///
/// Input    [batch, length, width], the same in every rank.
/// Output   likewise.
/// Weights  query, key, value and out, each with weight and bias: those of torch::nn::MultiheadAttention
///          with `in_proj_weight` cut in three. They begin as those of four torch::nn::Linear.
/// Cost     one sum over the group in the forward pass, and one in the backward pass. Without dropout
///          scaled_dot_product_attention; with it the weights of this rank's heads are in memory.
/// Errors   SettingsError for a width that the heads, or for heads that the group does not divide.
/// Source   Vaswani et al., "Attention Is All You Need" (2017); Shoeybi et al., "Megatron-LM" (2019).
class ShardedAttentionImpl : public torch::nn::Cloneable<ShardedAttentionImpl> {
 public:
  ShardedAttentionImpl(std::int64_t width, std::int64_t heads, TensorGroup of,
                       AttentionOptions options = {})
      : width_(width), heads_(heads), options_(options), group_(std::move(of)) {
    detail::share_of(heads, group_, "ShardedAttention", "heads");
    if (width <= 0 || width % heads != 0) {
      throw SettingsError({.what = "a width of " + std::to_string(width) + " and " +
                                   std::to_string(heads) + " heads",
                           .where = "ShardedAttention",
                           .why = "each head has width / heads features",
                           .fix = "Use a width that is a multiple of the number of heads."});
    }
    ShardedAttentionImpl::reset();
  }

  void reset() override {
    ColumnOptions const columns{.bias = options_.bias};
    query = register_module("query", ColumnLinear(width_, width_, group_, columns));
    key = register_module("key", ColumnLinear(width_, width_, group_, columns));
    value = register_module("value", ColumnLinear(width_, width_, group_, columns));
    out = register_module("out",
                          RowLinear(width_, width_, group_, RowOptions{.bias = options_.bias}));
    dropout = register_module("dropout", ShardedDropout(options_.dropout, group_, 1));
  }

  at::Tensor forward(at::Tensor const& x) {
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

  void pretty_print(std::ostream& stream) const override {
    stream << "frugal::ShardedAttention(" << width_ << ", " << heads_ << " heads, cut over "
           << group_->size() << ")";
  }

  ColumnLinear query{nullptr}, key{nullptr}, value{nullptr};
  RowLinear out{nullptr};
  ShardedDropout dropout{nullptr};

 private:
  /// [batch, length, own features] as [batch, own heads, length, features of a head].
  at::Tensor by_heads(at::Tensor const& x) const {
    return x.unflatten(-1, {heads_ / group_->size(), width_ / heads_}).transpose(1, 2);
  }
  at::Tensor with_dropout(at::Tensor const& q, at::Tensor const& k, at::Tensor const& v) {
    double const scale = 1.0 / std::sqrt(static_cast<double>(width_ / heads_));
    at::Tensor scores = at::matmul(q, k.transpose(-2, -1)) * scale;
    if (options_.causal) {
      std::int64_t const length = q.size(-2);
      at::Tensor const later = at::ones({length, length}, q.options().dtype(at::kBool)).triu(1);
      scores = scores.masked_fill(later, -std::numeric_limits<double>::infinity());
    }
    return at::matmul(dropout(scores.softmax(-1)).to(v.scalar_type()), v);
  }

  std::int64_t width_, heads_;
  AttentionOptions options_;
  TensorGroup group_;
};
TORCH_MODULE(ShardedAttention);

}  // namespace frugal
