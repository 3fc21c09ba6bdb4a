// SPDX-License-Identifier: Apache-2.0
#pragma once

// Modules whose weights are cut over a group of processes.

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <torch/nn/cloneable.h>
#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include <frugal/cluster/communicator.hpp>
#include <frugal/cluster/tensor_parallel/collectives.hpp>
#include <frugal/core/libtorch/layer_tensors.hpp>
#include <frugal/core/libtorch/parameters.hpp>
#include <frugal/core/source/batch.hpp>
#include <frugal/core/state/cut_tensors.hpp>
#include <frugal/core/state/module_tensors.hpp>
#include <frugal/core/state/tensor_part.hpp>
#include <frugal/data/fields_batch.hpp>
#include <frugal/error.hpp>
#include <frugal/model/save_weights.hpp>

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

  static WholeLinear drawn(std::int64_t in, std::int64_t out, bool has_bias);
};

void require_last_size(at::Tensor const& x, std::int64_t size, char const* where);

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

  at::Tensor forward(at::Tensor const& indices);

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

/// Dropout of a shard: draws the mask of the whole tensor, of which every rank takes its part. So the
/// masks of ranks are independent, all ranks have drawn as many random numbers, and the masks are those
/// of one process. torch::nn::Dropout would give every shard the same mask.
///
/// `dim`   the dimension of which this rank has a part, such as -1 after ColumnLinear.
/// Cost    draws and keeps a mask as large as the whole tensor, while it is cut.
class ShardedDropoutImpl : public torch::nn::Cloneable<ShardedDropoutImpl> {
 public:
  ShardedDropoutImpl(double p, TensorGroup of, std::int64_t dim = -1);
  void reset() override {}

  at::Tensor forward(at::Tensor const& x);

  void pretty_print(std::ostream& out) const override {
    out << "frugal::ShardedDropout(p=" << p_ << ", cut over " << group_->size() << ")";
  }

 private:
  double p_;
  std::int64_t dim_;
  TensorGroup group_;
};
TORCH_MODULE(ShardedDropout);

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
                       AttentionOptions options = {});

  void reset() override {
    ColumnOptions const columns{.bias = options_.bias};
    query = register_module("query", ColumnLinear(width_, width_, group_, columns));
    key = register_module("key", ColumnLinear(width_, width_, group_, columns));
    value = register_module("value", ColumnLinear(width_, width_, group_, columns));
    out = register_module("out",
                          RowLinear(width_, width_, group_, RowOptions{.bias = options_.bias}));
    dropout = register_module("dropout", ShardedDropout(options_.dropout, group_, 1));
  }

  at::Tensor forward(at::Tensor const& x);

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
  at::Tensor with_dropout(at::Tensor const& q, at::Tensor const& k, at::Tensor const& v);

  std::int64_t width_, heads_;
  AttentionOptions options_;
  TensorGroup group_;
};
TORCH_MODULE(ShardedAttention);

namespace detail {

/// The tensor of which each rank of a group has an equal part; all call it.
at::Tensor whole_of(Communicator& group, at::Tensor const& mine, TensorPart const& part);

}  // namespace detail

/// A module's parameters and buffers, those that are cut made whole, in every rank. All ranks of the
/// tensor group call it.
///
/// Cost    memory for the whole module in every rank.
/// Errors  ModuleError for a group of another size; ClusterError.
template <class Module>
NamedTensors whole_state(Module& module, Communicator& group) {
  NamedTensors all;
  detail::visit_all_tensors(
      base_module(module), [&](std::string const& name, at::Tensor const& tensor) {
        auto const part = part_of(tensor);
        all.emplace(name, part ? detail::whole_of(group, tensor, *part)
                               : tensor.detach().clone(at::MemoryFormat::Preserve));
      });
  return all;
}

/// Copies whole tensors into a module: of those that are cut, this rank's part. No exchange.
///
/// Errors  StateError for a name that is missing on one of both sides, or for another shape. The module
///         is then unchanged.
template <class Module>
void load_whole_state(Module& module, NamedTensors const& whole) {
  auto const refuse = [](std::string why) {
    throw StateError({.what = "these weights do not fit the module",
                      .where = "load_whole_state",
                      .why = std::move(why),
                      .fix = "Load the whole tensors of this module, under its names."});
  };
  std::vector<std::pair<at::Tensor, at::Tensor>> pairs;
  NamedTensors unexpected = whole;
  detail::visit_all_tensors(base_module(module),
                            [&](std::string const& name, at::Tensor const& tensor) {
                              auto const found = whole.find(name);
                              if (found == whole.end())
                                return refuse("there is no tensor '" + name + "'");
                              unexpected.erase(name);
                              if (found->second.sizes() != detail::whole_sizes(tensor)) {
                                return refuse("'" + name + "' has another shape there");
                              }
                              pairs.emplace_back(tensor, found->second);
                            });
  if (!unexpected.empty()) {
    refuse("the module has no tensor '" + unexpected.begin()->first + "'");
  }
  at::NoGradGuard const no_gradients;
  for (auto& [tensor, from] : pairs) tensor.copy_(detail::own_part(from, tensor));
}

/// Sets a parameter to this rank's part of what `fill(whole)` makes of a tensor of zeros with the whole
/// shape: for initial values of your own. All ranks of the tensor group call it with equal generators, and
/// draw the same as one process. `torch::nn::init` on the parameter itself draws the same shard in each.
///
///     for (at::Tensor const& each : net->parameters())
///       fr::fill_whole(each, [](at::Tensor& whole) { torch::nn::init::normal_(whole, 0, 0.02); });
///
/// Cost    memory for the whole parameter.
/// Errors  StateError if `fill` gives it another shape.
template <class Fill>
void fill_whole(at::Tensor const& parameter, Fill&& fill) {
  at::NoGradGuard const no_gradients;
  std::vector<std::int64_t> const sizes = detail::whole_sizes(parameter);
  at::Tensor whole = at::zeros(sizes, parameter.options().requires_grad(false));
  fill(whole);
  if (whole.sizes() != at::IntArrayRef(sizes)) {
    throw StateError({.what = "the initial value of a parameter has another shape than it",
                      .where = "fill_whole",
                      .why = "it has the shape " + detail::shape_text(whole),
                      .fix = "Change the tensor that `fill` gets in place."});
  }
  at::Tensor own = parameter;
  own.copy_(detail::own_part(whole, parameter));
}

/// save_weights() of a module that is cut over a group: the first rank writes whole tensors, which one
/// process can load. All ranks of the group call it; the result of the others is empty. Of a Grid, the
/// groups with another data rank than 0 leave it out.
template <class Module>
SavedWeights save_weights(Module& module, std::filesystem::path const& folder, Communicator& group,
                          SaveRules const& rules = {}) {
  NamedTensors const whole = whole_state(module, group);
  if (group.rank() != 0) return {};
  return detail::WeightsWriter(base_module(module), folder, rules, &whole).write();
}

}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/cluster/tensor_parallel.ipp>
#endif
