// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/autocast_mode.h>
#include <ATen/core/grad_mode.h>
#include <torch/nn/module.h>

#include <cmath>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <frugal/core/libtorch/interception.hpp>
#include <frugal/core/source/tensor_identity.hpp>
#include <frugal/model/lora/options.hpp>

namespace frugal {

/// The low-rank matrices of one layer, a child module of it: layer.lora.<name>. They move, print and
/// are saved with the layer.
///
/// For a weight of shape (out, in), A is (rank, in) and B is (out, rank). Of a convolution A has the
/// kernel's size, and B is a convolution of size 1. Of an embedding A is (rank, rows), B (columns,
/// rank).
class LoraAdapter : public torch::nn::Module {
 public:
  using Operator = LayerCall::Operator;

  /// `path`: the layer's name. The initial values are drawn from it and from the run's seed, so that
  /// they do not depend on what was drawn before.
  LoraAdapter(LoraSettings settings, Operator op, at::Tensor const& weight, std::string const& path,
              std::uint64_t seed);

  LoraSettings const& settings() const { return settings_; }
  Operator op() const { return op_; }
  double scale() const {
    auto const rank = static_cast<double>(settings_.rank);
    return settings_.alpha / (settings_.rank_stabilised ? std::sqrt(rank) : rank);
  }
  at::Tensor& a() { return a_; }
  at::Tensor& b() { return b_; }
  at::Tensor& magnitude() { return magnitude_; }  ///< undefined without DoRA
  /// PiSSA: the adapter begins as B A, and the layer computes with its weight without that product.
  /// The product is kept with the adapter and in checkpoints, and the weight as it is: another
  /// processor's singular value decomposition has other bits.
  void begin_as(at::Tensor const& a, at::Tensor const& b);

  bool active = true;  ///< takes part in the layer's calls

  /// The weight includes the adapter; see merge().
  bool is_merged() const { return merged_; }
  /// The weight's bits before the first of its adapters was merged; undefined in those that followed.
  at::Tensor const& kept() const { return kept_; }
  /// Adds it to the weight, in FP32 at least. `base`: the weight without any adapter, of which it
  /// computes its part; undefined if no other is merged, and then the adapter keeps it. The largest
  /// number of the sum, if it is beyond those of the weight's type; then nothing has changed.
  std::optional<double> merge_into(at::Tensor const& weight, at::Tensor const& base);
  /// Of the adapter that keeps a weight: notes what the merges have made of it.
  void note_merged(at::Tensor const& weight);
  /// Whether the weight has those numbers still. In another type only writes to it are seen.
  bool has_merged(at::Tensor const& weight) const;
  /// The weight does not include it any more.
  void forget_merge() {
    merged_ = false;
    kept_ = at::Tensor();
  }

  /// What the adapter adds to the weight, in the weight's shape, in FP32 at least.
  at::Tensor product() const { return product(a_, b_); }

  /// The layer's output with the adapter.
  at::Tensor call(LayerCall const& call, LayerRest const& rest) const;

 private:
  /// Tensors of InferenceMode count no writes.
  static std::int64_t version_of(at::Tensor const& weight) {
    return weight.is_inference() ? -1 : static_cast<std::int64_t>(weight._version());
  }

  // Autocast converts by itself. Without it, adapters of a 16-bit layer compute in FP32.
  at::Tensor own_type(at::Tensor const& input) const;

  /// scale * B A in the weight's shape, in FP32 at least.
  at::Tensor product(at::Tensor const& left, at::Tensor const& right) const;

  /// base + scale * input A^T B^T, in one product after the first.
  at::Tensor add_product(at::Tensor const& base, at::Tensor const& input) const;

  /// The two matrices alone. Of an embedding with the scale.
  at::Tensor through(LayerCall const& call, at::Tensor const& input) const;

  /// The same of what PiSSA began with.
  at::Tensor through_first(at::Tensor const& input) const {
    return input.matmul(first_a_.t()).matmul(first_b_.t());
  }

  at::Tensor with_magnitude(LayerCall const& call, LayerRest const& rest, at::Tensor const& dropped,
                            at::Tensor const& input) const;

  /// The weight as a matrix whose rows have a magnitude each: one for each output of the layer, as in
  /// PEFT. Those of an embedding are its columns.
  at::Tensor as_rows(at::Tensor const& weight) const;
  at::Tensor lengths_of(at::Tensor const& weight) const;

  /// The norm of each row of weight + scale * B A, without that sum: of the squares of a row, the
  /// mixed term is B (A W^T), and the adapter's own B (A A^T) B^T.
  at::Tensor norms_of_sum(at::Tensor const& weight) const;

  static std::uint64_t values_of(at::Tensor const& weight) {
    detail::TensorHash hash;
    hash.add(weight);
    return hash.digest();
  }

  LoraSettings settings_;
  Operator op_;
  at::Tensor a_, b_, magnitude_;
  at::Tensor first_a_, first_b_;  ///< PiSSA: what it began with
  bool merged_ = false;
  at::Tensor kept_;
  at::ScalarType merged_type_ = at::ScalarType::Undefined;
  std::int64_t merged_version_ = 0;
  std::uint64_t merged_values_ = 0;
};

namespace detail {

/// Adds an adapter to the calls of a layer.
class LoraHook : public LayerHook {
 public:
  explicit LoraHook(std::shared_ptr<LoraAdapter> adapter) : adapter_(std::move(adapter)) {}
  Place place() const override { return Place::adapt; }
  at::Tensor call(LayerCall const& call, LayerRest const& rest) override {
    // The weight may be tied to a layer of another kind, which has no adapter.
    bool const adds = adapter_->active && !adapter_->is_merged() && call.op == adapter_->op();
    return adds ? adapter_->call(call, rest) : rest(call);
  }
  bool is_of(LoraAdapter const& adapter) const { return adapter_.get() == &adapter; }

 private:
  std::shared_ptr<LoraAdapter> adapter_;
};

}  // namespace detail
}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/model/lora/adapter.ipp>
#endif
