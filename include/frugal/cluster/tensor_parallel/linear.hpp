// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>
#include <torch/nn/cloneable.h>
#include <torch/nn/init.h>
#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>

#include <cmath>
#include <cstdint>
#include <optional>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include <frugal/cluster/tensor_parallel/collectives.hpp>
#include <frugal/core/libtorch/layer_tensors.hpp>
#include <frugal/error.hpp>

namespace frugal {

struct ColumnOptions {
  bool bias = true;
  /// Whether every rank gets all columns of the output. Otherwise the next layer takes the shards.
  bool gather = false;
};

struct RowOptions {
  bool bias = true;
  /// Whether the input is the shards of a layer before. Otherwise all ranks have the whole input, and
  /// each takes its part.
  bool input_is_sharded = true;
};

namespace detail {

/// What torch.nn.Linear makes, drawn from the same generator.
struct WholeLinear {
  at::Tensor weight{}, bias{};

  static WholeLinear drawn(std::int64_t in, std::int64_t out, bool has_bias) {
    WholeLinear whole{.weight = at::empty({out, in})};
    torch::nn::init::kaiming_uniform_(whole.weight, std::sqrt(5.0));
    if (!has_bias) return whole;
    double const bound = 1.0 / std::sqrt(static_cast<double>(in));
    whole.bias = at::empty({out});
    torch::nn::init::uniform_(whole.bias, -bound, bound);
    return whole;
  }
};

inline void require_last_size(at::Tensor const& x, std::int64_t size, char const* where) {
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

}  // namespace detail

/// A linear layer whose output features are cut over the processes of a group: x W^T + b, of which
/// this rank computes `out / ranks` columns. The first layer of a pair with RowLinear.
///
/// Input    [..., in], the same in every rank.
/// Output   [..., out / ranks], or [..., out] with ColumnOptions::gather.
/// Weights  weight [out / ranks, in], bias [out / ranks]. They begin as those of torch::nn::Linear
///          with the same seed, which is made whole in each rank and cut.
/// Cost     backward: one sum of the input's gradient over the group.
/// Errors   SettingsError for `out` that the group does not divide; ModuleError for another input.
/// Source   Shoeybi et al., "Megatron-LM" (2019), section 3.
class ColumnLinearImpl : public torch::nn::Cloneable<ColumnLinearImpl>, public detail::HasMembers {
 public:
  ColumnLinearImpl(std::int64_t in, std::int64_t out, TensorGroup of, ColumnOptions options = {})
      : in_(in), out_(out), options_(options), group_(std::move(of)) {
    detail::share_of(out, group_, "ColumnLinear", "output features");
    ColumnLinearImpl::reset();
  }

  void reset() override {
    auto const whole = detail::WholeLinear::drawn(in_, out_, options_.bias);
    weight = detail::register_shard(*this, "weight", whole.weight, 0, group_);
    bias = options_.bias ? detail::register_shard(*this, "bias", whole.bias, 0, group_)
                         : register_parameter("bias", at::Tensor(), /*requires_grad=*/false);
  }

  at::Tensor forward(at::Tensor const& x) {
    at::Tensor const y = shard(copy_to_group(x, group_));
    return options_.gather ? gather_from_group(y, group_) : y;
  }
  /// The columns of this rank, of an input that copy_to_group() has passed: several layers with one
  /// input share its sum in the backward pass.
  at::Tensor shard(at::Tensor const& copied) const {
    detail::require_last_size(copied, in_, "ColumnLinear");
    return at::linear(copied, weight, bias.defined() ? std::optional(bias) : std::nullopt);
  }

  void pretty_print(std::ostream& out) const override {
    out << "frugal::ColumnLinear(" << in_ << ", " << out_ << ", cut over " << group_->size() << ")";
  }

  std::vector<detail::LayerMember> members() override {
    return {{"weight", &weight}, {"bias", &bias}};
  }

  at::Tensor weight{}, bias{};

 private:
  std::int64_t in_, out_;
  ColumnOptions options_;
  TensorGroup group_;
};
TORCH_MODULE(ColumnLinear);

/// A linear layer whose input features are cut over the processes of a group: each rank multiplies its
/// part, and the products are added up in one fixed order. The second layer of a pair with
/// ColumnLinear.
///
/// Input    [..., in / ranks], or [..., in] without RowOptions::input_is_sharded.
/// Output   [..., out], the same bits in every rank.
/// Weights  weight [out, in / ranks], in memory column by column; bias [out], whole in every rank and
///          added once. They begin as those of torch::nn::Linear with the same seed.
/// Cost     forward: one sum of the output over the group.
/// Errors   SettingsError for `in` that the group does not divide; ModuleError for another input.
/// Source   Shoeybi et al., "Megatron-LM" (2019), section 3.
class RowLinearImpl : public torch::nn::Cloneable<RowLinearImpl>, public detail::HasMembers {
 public:
  RowLinearImpl(std::int64_t in, std::int64_t out, TensorGroup of, RowOptions options = {})
      : in_(in), out_(out), options_(options), group_(std::move(of)) {
    detail::share_of(in, group_, "RowLinear", "input features");
    RowLinearImpl::reset();
  }

  void reset() override {
    auto const whole = detail::WholeLinear::drawn(in_, out_, options_.bias);
    weight = detail::register_shard(*this, "weight", whole.weight, 1, group_);
    bias = register_parameter("bias", whole.bias, /*requires_grad=*/options_.bias);
  }

  at::Tensor forward(at::Tensor const& x) {
    at::Tensor const own = options_.input_is_sharded ? x : scatter_to_group(x, group_);
    detail::require_last_size(own, in_ / group_->size(), "RowLinear");
    at::Tensor const sum = reduce_from_group(at::linear(own, weight), group_);
    return bias.defined() ? sum + bias.to(sum.scalar_type()) : sum;
  }

  void pretty_print(std::ostream& out) const override {
    out << "frugal::RowLinear(" << in_ << ", " << out_ << ", cut over " << group_->size() << ")";
  }

  std::vector<detail::LayerMember> members() override {
    return {{"weight", &weight}, {"bias", &bias}};
  }

  at::Tensor weight{}, bias{};

 private:
  std::int64_t in_, out_;
  RowOptions options_;
  TensorGroup group_;
};
TORCH_MODULE(RowLinear);

}  // namespace frugal
