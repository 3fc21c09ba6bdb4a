// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>
#include <torch/nn/cloneable.h>
#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>

#include <cstdint>
#include <ostream>
#include <utility>
#include <vector>

#include <frugal/cluster/tensor_parallel/collectives.hpp>
#include <frugal/core/libtorch/layer_tensors.hpp>

namespace frugal {

/// An embedding whose vocabulary is cut over the processes of a group: each rank looks up the indices
/// of its rows, and has zeros for the others, so that the sum over the group has every row as it is.
///
/// Input    indices of any shape, the same in every rank.
/// Output   [..., width], the same bits in every rank.
/// Weights  weight [words / ranks, width]. It begins as that of torch::nn::Embedding with the same seed.
/// Cost     forward: one sum of the output over the group.
/// Errors   SettingsError for `words` that the group does not divide: pad the vocabulary. LibTorch's
///          own error, in every rank, for an index outside of the whole vocabulary.
/// Source   Shoeybi et al., "Megatron-LM" (2019), section 3.
class ShardedEmbeddingImpl : public torch::nn::Cloneable<ShardedEmbeddingImpl>,
                             public detail::HasMembers {
 public:
  ShardedEmbeddingImpl(std::int64_t words, std::int64_t width, TensorGroup of)
      : words_(words), width_(width), group_(std::move(of)) {
    detail::share_of(words, group_, "ShardedEmbedding", "words");
    ShardedEmbeddingImpl::reset();
  }

  void reset() override {
    weight =
        detail::register_shard(*this, "weight", at::empty({words_, width_}).normal_(), 0, group_);
  }

  at::Tensor forward(at::Tensor const& indices) {
    if (group_->size() == 1) return at::embedding(weight, indices);
    std::int64_t const count = words_ / group_->size();
    at::Tensor const own = indices - group_->rank() * count;
    // An index that no rank has stays out of range, so that the look-up refuses it.
    at::Tensor const of_others = (own.lt(0) | own.ge(count)) & indices.ge(0) & indices.lt(words_);
    at::Tensor const found = at::embedding(weight, own.masked_fill(of_others, 0));
    return reduce_from_group(found.masked_fill(of_others.unsqueeze(-1), 0), group_);
  }

  void pretty_print(std::ostream& out) const override {
    out << "frugal::ShardedEmbedding(" << words_ << ", " << width_ << ", cut over "
        << group_->size() << ")";
  }

  std::vector<detail::LayerMember> members() override { return {{"weight", &weight}}; }

  at::Tensor weight{};

 private:
  std::int64_t words_, width_;
  TensorGroup group_;
};
TORCH_MODULE(ShardedEmbedding);

}  // namespace frugal
