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
#include <vector>

#include <frugal/base/name_hash.hpp>
#include <frugal/core/libtorch/interception.hpp>
#include <frugal/core/libtorch/number_range.hpp>
#include <frugal/data/tensor_identity.hpp>
#include <frugal/error.hpp>
#include <frugal/inline.hpp>
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
  FRUGAL_INLINE LoraAdapter(LoraSettings settings, Operator op, at::Tensor const& weight,
                            std::string const& path, std::uint64_t seed)
      : torch::nn::Module("LoraAdapter"), settings_(std::move(settings)), op_(op) {
    at::NoGradGuard const no_gradients;
    std::int64_t const rank = settings_.rank;
    bool const narrow = at::isReducedFloatingType(weight.scalar_type());
    auto const options =
        at::TensorOptions().dtype(narrow ? at::kFloat : weight.scalar_type()).device(at::kCPU);
    // An odd factor keeps seeds apart; a seed of 0 leaves the name's hash as it is.
    auto generator = at::detail::createCPUGenerator(detail::name_hash(path + "/" + settings_.name) ^
                                                    seed * 0x9e3779b97f4a7c15U);
    at::Tensor a, b;
    if (op == Operator::embedding) {
      a = at::zeros({rank, weight.size(0)}, options);
      b = at::empty({weight.size(1), rank}, options).normal_(0, 1, generator);
    } else {
      std::vector<std::int64_t> shape = weight.sizes().vec();
      std::vector<std::int64_t> other(shape.size(), 1);
      other[0] = std::exchange(shape[0], rank);
      other[1] = rank;
      // Kaiming's uniform distribution with a = sqrt(5), as torch::nn::Linear begins with.
      auto const fan_in = static_cast<double>(weight.numel() / weight.size(0));
      double const bound = 1 / std::sqrt(fan_in);
      a = at::empty(shape, options).uniform_(-bound, bound, generator);
      b = at::zeros(other, options);
    }
    a_ = register_parameter("A", a.to(weight.device()));
    b_ = register_parameter("B", b.to(weight.device()));
    if (settings_.dora) magnitude_ = register_parameter("magnitude", lengths_of(weight));
    if (settings_.pissa) {  // begin_with_singular_values() fills them
      first_a_ = register_buffer("A0", at::zeros_like(a_));
      first_b_ = register_buffer("B0", at::zeros_like(b_));
    }
  }

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
  FRUGAL_INLINE void begin_as(at::Tensor const& a, at::Tensor const& b) {
    at::NoGradGuard const no_gradients;
    for (at::Tensor const& each : {a_, first_a_}) each.copy_(a);
    for (at::Tensor const& each : {b_, first_b_}) each.copy_(b);
  }

  bool active = true;  ///< takes part in the layer's calls

  /// The weight includes the adapter; see merge().
  bool is_merged() const { return merged_; }
  /// The weight's bits before the first of its adapters was merged; undefined in those that followed.
  at::Tensor const& kept() const { return kept_; }
  /// Adds it to the weight, in FP32 at least. `base`: the weight without any adapter, of which it
  /// computes its part; undefined if no other is merged, and then the adapter keeps it. The largest
  /// number of the sum, if it is beyond those of the weight's type; then nothing has changed.
  FRUGAL_INLINE std::optional<double> merge_into(at::Tensor const& weight, at::Tensor const& base) {
    at::NoGradGuard const no_gradients;
    at::ScalarType const type = at::promote_types(weight.scalar_type(), at::kFloat);
    at::Tensor const plain = (base.defined() ? base : weight.detach()).to(weight.device(), type);
    at::Tensor added = product();
    if (first_a_.defined()) added = added - product(first_a_, first_b_);
    at::Tensor sum = plain + added.to(plain.device());
    if (settings_.dora) {
      std::vector<std::int64_t> rows(static_cast<std::size_t>(sum.dim()), 1);
      rows[op_ == Operator::embedding ? 1 : 0] = -1;
      sum *= (magnitude_.detach() / norms_of_sum(plain)).view(rows);
    }
    if (base.defined()) sum = weight.to(type) + (sum - plain);
    if (auto const reach = detail::beyond_range(sum, weight.scalar_type())) return reach;
    at::Tensor const kept = base.defined() ? at::Tensor() : weight.detach().clone();
    weight.copy_(sum);  // throws for a tensor of InferenceMode outside of it
    if (kept.defined()) kept_ = kept;
    merged_ = true;
    return std::nullopt;
  }
  /// Of the adapter that keeps a weight: notes what the merges have made of it.
  FRUGAL_INLINE void note_merged(at::Tensor const& weight) {
    merged_type_ = weight.scalar_type();
    merged_version_ = version_of(weight);
    merged_values_ = values_of(weight);
  }
  /// Whether the weight has those numbers still. In another type only writes to it are seen.
  FRUGAL_INLINE bool has_merged(at::Tensor const& weight) const {
    if (weight.scalar_type() != merged_type_) {
      return !weight.is_inference() && version_of(weight) == merged_version_;
    }
    return values_of(weight) == merged_values_;
  }
  /// The weight does not include it any more.
  void forget_merge() {
    merged_ = false;
    kept_ = at::Tensor();
  }

  /// What the adapter adds to the weight, in the weight's shape, in FP32 at least.
  at::Tensor product() const { return product(a_, b_); }

  /// The layer's output with the adapter.
  FRUGAL_INLINE at::Tensor call(LayerCall const& call, LayerRest const& rest) const {
    if (op_ == Operator::embedding) {
      at::Tensor const base = rest(call);
      at::Tensor const added = through(call, call.input);
      if (!settings_.dora) return base.add(added.to(base.scalar_type()));
      at::Tensor const factor = magnitude_ / norms_of_sum(call.weight);
      at::Tensor const own = rest.adapts() ? call.plain() : base;
      return (base + (factor - 1) * own + factor * added).to(base.scalar_type());
    }
    at::Tensor const input = own_type(call.input);
    bool const drops = settings_.dropout > 0 && is_training();
    at::Tensor const dropped = drops ? at::dropout(input, settings_.dropout, true) : input;
    if (settings_.dora) return with_magnitude(call, rest, drops ? dropped : at::Tensor(), input);
    at::Tensor const base = rest(call);
    if (first_a_.defined()) {
      // The difference first: at the beginning it is exactly zero.
      at::Tensor const added = through(call, dropped) - through_first(input);
      return base.add(added.to(base.scalar_type()), scale());
    }
    if (op_ == Operator::linear) return add_product(base, dropped);
    return base.add(through(call, dropped).to(base.scalar_type()), scale());
  }

 private:
  /// Tensors of InferenceMode count no writes.
  static std::int64_t version_of(at::Tensor const& weight) {
    return weight.is_inference() ? -1 : static_cast<std::int64_t>(weight._version());
  }

  // Autocast converts by itself. Without it, adapters of a 16-bit layer compute in FP32.
  FRUGAL_INLINE at::Tensor own_type(at::Tensor const& input) const {
    bool const cast = input.scalar_type() != a_.scalar_type() &&
                      !at::autocast::is_autocast_enabled(input.device().type());
    return cast ? input.to(a_.scalar_type()) : input;
  }

  /// scale * B A in the weight's shape, in FP32 at least.
  FRUGAL_INLINE at::Tensor product(at::Tensor const& left, at::Tensor const& right) const {
    at::ScalarType const type = at::promote_types(left.scalar_type(), at::kFloat);
    at::Tensor const a = left.detach().to(type);
    at::Tensor const b = right.detach().to(type);
    if (op_ == Operator::embedding) return b.mm(a).t().mul(scale());
    std::vector<std::int64_t> shape = left.sizes().vec();
    shape[0] = right.size(0);
    return b.flatten(1).mm(a.flatten(1)).mul(scale()).view(shape);
  }

  /// base + scale * input A^T B^T, in one product after the first.
  FRUGAL_INLINE at::Tensor add_product(at::Tensor const& base, at::Tensor const& input) const {
    at::Tensor const low = input.reshape({-1, input.size(-1)}).mm(a_.t());
    at::Tensor const flat = base.reshape({-1, base.size(-1)});
    if (flat.scalar_type() == low.scalar_type()) {
      return at::addmm(flat, low, b_.t(), 1, scale()).view(base.sizes());
    }
    return flat.add(low.mm(b_.t()).to(flat.scalar_type()), scale()).view(base.sizes());
  }

  /// The two matrices alone. Of an embedding with the scale.
  FRUGAL_INLINE at::Tensor through(LayerCall const& call, at::Tensor const& input) const {
    if (op_ == Operator::embedding) {
      // As in PEFT, the row of padding has no gradient.
      return at::embedding(a_.t(), input, call.padding_index, call.scale_by_frequency)
          .matmul(b_.t())
          .mul(scale());
    }
    if (op_ == Operator::linear) return input.matmul(a_.t()).matmul(b_.t());
    LayerCall low = call;
    low.input = input;
    low.weight = a_;
    low.bias = at::Tensor();
    return at::conv2d(low.plain(), b_);
  }

  /// The same of what PiSSA began with.
  at::Tensor through_first(at::Tensor const& input) const {
    return input.matmul(first_a_.t()).matmul(first_b_.t());
  }

  FRUGAL_INLINE at::Tensor with_magnitude(LayerCall const& call, LayerRest const& rest,
                                          at::Tensor const& dropped,
                                          at::Tensor const& input) const {
    LayerCall bare = call;
    bare.bias = at::Tensor();
    at::Tensor base = rest(bare);
    at::Tensor const norms = norms_of_sum(call.weight);
    at::Tensor factor = magnitude_ / norms;
    if (op_ == Operator::conv2d) factor = factor.view({-1, 1, 1});
    // As PEFT does it: with dropout, what the magnitude changes is computed from the same input as
    // the adapter's part, and the base's own part from all of it.
    if (dropped.defined()) bare.input = dropped.to(call.input.scalar_type());
    // The magnitude scales what the weight gives, and nothing that other adapters add.
    at::Tensor own = base;
    if (rest.adapts()) {
      own = bare.plain();
    } else if (dropped.defined()) {
      own = rest(bare);
    }
    if (first_a_.defined()) {
      own = own - scale() * through_first(dropped.defined() ? dropped : input);
      base = base - scale() * through_first(input);
    }
    at::Tensor out = base + (factor - 1) * own +
                     factor * scale() * through(call, dropped.defined() ? dropped : input);
    out = out.to(base.scalar_type());
    if (!call.bias.defined()) return out;
    return op_ == Operator::conv2d ? out + call.bias.view({-1, 1, 1}) : out + call.bias;
  }

  /// The weight as a matrix whose rows have a magnitude each: one for each output of the layer, as in
  /// PEFT. Those of an embedding are its columns.
  FRUGAL_INLINE at::Tensor as_rows(at::Tensor const& weight) const {
    at::Tensor const flat = weight.detach().flatten(1);
    return op_ == Operator::embedding ? flat.t() : flat;
  }
  FRUGAL_INLINE at::Tensor lengths_of(at::Tensor const& weight) const {
    return as_rows(weight).to(at::promote_types(weight.scalar_type(), at::kFloat)).norm(2, 1);
  }

  /// The norm of each row of weight + scale * B A, without that sum: of the squares of a row, the
  /// mixed term is B (A W^T), and the adapter's own B (A A^T) B^T.
  FRUGAL_INLINE at::Tensor norms_of_sum(at::Tensor const& weight) const {
    at::NoGradGuard const no_gradients;
    // Squares of small numbers of 16 bits are zero.
    at::ScalarType const type = at::promote_types(a_.scalar_type(), at::kFloat);
    at::Tensor const flat = as_rows(weight).to(type);
    at::Tensor a = a_.detach().flatten(1).to(type);
    at::Tensor b = b_.detach().flatten(1).to(type);
    if (first_a_.defined()) {  // B A - B0 A0, as one product
      a = at::cat({a, first_a_.to(type)}, 0);
      b = at::cat({b, -first_b_.to(type)}, 1);
    }
    at::Tensor const own = flat.square().sum(1);
    at::Tensor const mixed = (flat.mm(a.t()) * b).sum(1);
    at::Tensor const added = (b.mm(a.mm(a.t())) * b).sum(1);
    return (own + 2 * scale() * mixed + scale() * scale() * added).clamp_min(0).sqrt();
  }

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
