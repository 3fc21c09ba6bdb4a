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
#include <string>
#include <utility>
#include <vector>

#include <frugal/base/name_hash.hpp>
#include <frugal/core/libtorch/interception.hpp>
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

  /// `path`: the layer's name, from which the initial values are drawn, so that they depend on
  /// nothing else.
  FRUGAL_INLINE LoraAdapter(LoraSettings settings, Operator op, at::Tensor const& weight,
                            std::string const& path)
      : torch::nn::Module("LoraAdapter"), settings_(std::move(settings)), op_(op) {
    at::NoGradGuard const no_gradients;
    std::int64_t const rank = settings_.rank;
    bool const narrow = at::isReducedFloatingType(weight.scalar_type());
    auto const options =
        at::TensorOptions().dtype(narrow ? at::kFloat : weight.scalar_type()).device(at::kCPU);
    auto generator = at::detail::createCPUGenerator(detail::name_hash(path + "/" + settings_.name));
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
    if (settings_.dora) magnitude_ = register_parameter("magnitude", row_norms(weight));
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

  bool active = true;  ///< takes part in the layer's calls

  /// The weight includes the adapter; see merge().
  bool is_merged() const { return kept_.defined(); }
  /// Adds it to the weight, in FP32 at least, and keeps the weight's bits for unmerge().
  FRUGAL_INLINE void merge_into(at::Tensor const& weight) {
    at::NoGradGuard const no_gradients;
    kept_ = weight.detach().clone();
    at::Tensor sum =
        kept_.to(at::promote_types(kept_.scalar_type(), at::kFloat)) + product().to(kept_.device());
    if (settings_.dora) {
      std::vector<std::int64_t> rows(static_cast<std::size_t>(sum.dim()), 1);
      rows[0] = -1;
      sum *= (magnitude_.detach() / norms_of_sum(kept_)).view(rows);
    }
    weight.copy_(sum);
  }
  FRUGAL_INLINE void unmerge_from(at::Tensor const& weight) {
    at::NoGradGuard const no_gradients;
    weight.copy_(kept_);
    kept_ = at::Tensor();
  }

  /// What the adapter adds to the weight, in the weight's shape, in FP32 at least.
  FRUGAL_INLINE at::Tensor product() const {
    at::ScalarType const type = at::promote_types(a_.scalar_type(), at::kFloat);
    at::Tensor const a = a_.detach().to(type);
    at::Tensor const b = b_.detach().to(type);
    if (op_ == Operator::embedding) return b.mm(a).t().mul(scale());
    std::vector<std::int64_t> shape = a_.sizes().vec();
    shape[0] = b_.size(0);
    return b.flatten(1).mm(a.flatten(1)).mul(scale()).view(shape);
  }

  /// The layer's output with the adapter.
  FRUGAL_INLINE at::Tensor call(LayerCall const& call, LayerRest const& rest) const {
    if (op_ == Operator::embedding) return rest(call).add(through(call, call.input));
    at::Tensor const input = own_type(call.input);
    bool const drops = settings_.dropout > 0 && is_training();
    at::Tensor const dropped = drops ? at::dropout(input, settings_.dropout, true) : input;
    if (settings_.dora) return with_magnitude(call, rest, drops ? dropped : at::Tensor(), input);
    at::Tensor const base = rest(call);
    if (op_ == Operator::linear) return add_product(base, dropped);
    return base.add(through(call, dropped).to(base.scalar_type()), scale());
  }

 private:
  // Autocast converts by itself. Without it, adapters of a 16-bit layer compute in FP32.
  FRUGAL_INLINE at::Tensor own_type(at::Tensor const& input) const {
    bool const cast = input.scalar_type() != a_.scalar_type() &&
                      !at::autocast::is_autocast_enabled(input.device().type());
    return cast ? input.to(a_.scalar_type()) : input;
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

  FRUGAL_INLINE at::Tensor with_magnitude(LayerCall const& call, LayerRest const& rest,
                                          at::Tensor const& dropped,
                                          at::Tensor const& input) const {
    LayerCall bare = call;
    bare.bias = at::Tensor();
    at::Tensor const base = rest(bare);
    at::Tensor const norms = norms_of_sum(call.weight);
    at::Tensor factor = magnitude_ / norms;
    if (op_ == Operator::conv2d) factor = factor.view({-1, 1, 1});
    // As PEFT does it: with dropout, what the magnitude changes is computed from the same input as
    // the adapter's part, and the base's own part from all of it.
    if (dropped.defined()) bare.input = dropped.to(call.input.scalar_type());
    at::Tensor const seen = dropped.defined() ? rest(bare) : base;
    at::Tensor out = base + (factor - 1) * seen +
                     factor * scale() * through(call, dropped.defined() ? dropped : input);
    out = out.to(base.scalar_type());
    if (!call.bias.defined()) return out;
    return op_ == Operator::conv2d ? out + call.bias.view({-1, 1, 1}) : out + call.bias;
  }

  FRUGAL_INLINE static at::Tensor row_norms(at::Tensor const& weight) {
    return weight.detach().flatten(1).to(at::kFloat).norm(2, 1);
  }

  /// The norm of each row of weight + scale * B A, without that sum: of the squares of a row, the
  /// mixed term is B (A W^T), and the adapter's own B (A A^T) B^T.
  FRUGAL_INLINE at::Tensor norms_of_sum(at::Tensor const& weight) const {
    at::NoGradGuard const no_gradients;
    at::Tensor const flat = weight.detach().flatten(1).to(a_.scalar_type());
    at::Tensor const a = a_.detach().flatten(1);
    at::Tensor const b = b_.detach().flatten(1);
    at::Tensor const own = flat.square().sum(1);
    at::Tensor const mixed = (flat.mm(a.t()) * b).sum(1);
    at::Tensor const added = (b.mm(a.mm(a.t())) * b).sum(1);
    return (own + 2 * scale() * mixed + scale() * scale() * added).clamp_min(0).sqrt();
  }

  LoraSettings settings_;
  Operator op_;
  at::Tensor a_, b_, magnitude_;
  at::Tensor kept_;  ///< the weight before it was merged
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
