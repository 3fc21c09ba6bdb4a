// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>
#include <torch/nn/cloneable.h>
#include <torch/nn/pimpl.h>

#include <cstdint>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include <frugal/cluster/tensor_parallel/collectives.hpp>
#include <frugal/error.hpp>

namespace frugal {

/// Dropout of a shard: draws the mask of the whole tensor, of which every rank takes its part. So the
/// masks of ranks are independent, all ranks have drawn as many random numbers, and the masks are those
/// of one process. torch::nn::Dropout would give every shard the same mask.
///
/// `dim`   the dimension of which this rank has a part, such as -1 after ColumnLinear.
/// Cost    draws and keeps a mask as large as the whole tensor, while it is cut.
class ShardedDropoutImpl : public torch::nn::Cloneable<ShardedDropoutImpl> {
 public:
  ShardedDropoutImpl(double p, TensorGroup of, std::int64_t dim = -1)
      : p_(p), dim_(dim), group_(std::move(of)) {
    if (p >= 0 && p <= 1) return;
    throw SettingsError({.what = "a dropout probability of " + std::to_string(p),
                         .where = "ShardedDropout",
                         .why = "a probability is from 0 to 1",
                         .fix = "Correct it."});
  }
  void reset() override {}

  at::Tensor forward(at::Tensor const& x) {
    if (p_ == 0 || !is_training()) return x;
    std::int64_t const ranks = group_->size(), own = x.size(dim_);
    std::vector<std::int64_t> whole = x.sizes().vec();
    whole[static_cast<std::size_t>(at::maybe_wrap_dim(dim_, x.dim()))] *= ranks;
    at::Tensor const mask =
        at::dropout(at::ones(whole, x.options().requires_grad(false)), p_, true);
    return x * mask.narrow(dim_, group_->rank() * own, own);
  }

  void pretty_print(std::ostream& out) const override {
    out << "frugal::ShardedDropout(p=" << p_ << ", cut over " << group_->size() << ")";
  }

 private:
  double p_;
  std::int64_t dim_;
  TensorGroup group_;
};
TORCH_MODULE(ShardedDropout);

}  // namespace frugal
