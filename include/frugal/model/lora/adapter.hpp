// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/autocast_mode.h>
#include <ATen/core/grad_mode.h>
#include <torch/nn/module.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <frugal/core/compose/fixed_string.hpp>
#include <frugal/core/compose/rational.hpp>
#include <frugal/core/libtorch/interception.hpp>
#include <frugal/core/libtorch/tensor_map.hpp>
#include <frugal/core/source/tensor_identity.hpp>

namespace frugal {

/// Columns of an adapter's first matrix, and rows of its second.
template <int R>
struct Rank {
  static_assert(R >= 1, "frugal: Rank<0> adapts nothing. Write Rank<8>.");
  static constexpr std::int64_t rank = R;
};

/// An adapter's product is scaled by this over its rank: Alpha<32>, Alpha<0.5>.
template <Rational A>
struct Alpha {
  static constexpr double alpha = A.value();
  static_assert(alpha > 0, "frugal: Alpha must be positive. Write Alpha<16>.");
};

/// The layers that are adapted: by the last parts of their names, as in PEFT's target_modules
/// (On<"q_proj"> is every layer with that name), or by patterns over whole names ("encoder.*.query").
template <fixed_string... Names>
struct On {
  static_assert(
      sizeof...(Names) > 0,
      "frugal: On<> adapts nothing. Write the layers' names: On<\"q_proj\", \"v_proj\">.");
  static constexpr std::array<std::string_view, sizeof...(Names)> names{Names...};
};

/// Parameters that are trained besides the adapters, such as a new head; PEFT's modules_to_save.
template <fixed_string... Patterns>
struct AlsoTrain {
  static_assert(sizeof...(Patterns) > 0,
                "frugal: AlsoTrain<> trains nothing. Write AlsoTrain<\"head.*\">, or remove it.");
  static constexpr std::array<std::string_view, sizeof...(Patterns)> patterns{Patterns...};
};

/// The probability with which an adapter's input is left out in training: AdapterDropout<0.1>.
template <Rational P>
struct AdapterDropout {
  static constexpr double adapter_dropout = P.value();
  static_assert(adapter_dropout >= 0 && adapter_dropout < 1,
                "frugal: AdapterDropout is a probability from 0 up to, but not including, 1.");
};

/// The scale is alpha over the root of the rank (rsLoRA), so that high ranks learn as fast.
struct RankStabilized {
  static constexpr bool rank_stabilized = true;
};
/// Trains the length of each row of the weight apart from its direction (DoRA).
struct Dora {
  static constexpr bool dora = true;
};
/// The adapter begins as the largest singular values of the weight (PiSSA), which leave the base.
struct Pissa {
  static constexpr bool pissa = true;
};
/// The adapter's name; "default" without.
template <fixed_string Name>
struct AdapterName {
  static_assert(!std::string_view(Name).empty() &&
                    std::string_view(Name).find('.') == std::string_view::npos,
                "frugal: an adapter's name is a part of its tensors' names: not empty, no dot.");
  static constexpr std::string_view adapter_name = Name;
};

/// Blocks of 64 weights in 4 bits, at the quantiles of a normal distribution (QLoRA).
struct NF4 {};
/// The type in which the adapted layers' weights are kept: Base<NF4>.
template <class Type>
struct Base {
  using base_type = Type;
};

namespace detail::option {
struct rank {
  template <class O>
  static constexpr bool has = requires { O::rank; };
};
struct alpha {
  template <class O>
  static constexpr bool has = requires { O::alpha; };
};
struct on_layers {
  template <class O>
  static constexpr bool has = requires { O::names; };
};
struct also_train {
  template <class O>
  static constexpr bool has = requires { O::patterns; };
};
struct adapter_dropout {
  template <class O>
  static constexpr bool has = requires { O::adapter_dropout; };
};
struct rank_stabilized {
  template <class O>
  static constexpr bool has = requires { O::rank_stabilized; };
};
struct dora {
  template <class O>
  static constexpr bool has = requires { O::dora; };
};
struct pissa {
  template <class O>
  static constexpr bool has = requires { O::pissa; };
};
struct adapter_name {
  template <class O>
  static constexpr bool has = requires { O::adapter_name; };
};
struct base_type {
  template <class O>
  static constexpr bool has = requires { typename O::base_type; };
};
}  // namespace detail::option

/// The settings of an adapter at run time; `Lora<...>` makes one of its options.
struct LoraSettings {
  std::int64_t rank = 8;
  double alpha = 8;
  double dropout = 0;
  bool rank_stabilized = false;
  bool dora = false;
  bool pissa = false;
  bool nf4 = false;
  std::string name = "default";
  friend bool operator==(LoraSettings const&, LoraSettings const&) = default;
};

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
    return settings_.alpha / (settings_.rank_stabilized ? std::sqrt(rank) : rank);
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

namespace frugal::detail {

/// A layer that can be adapted.
struct AdaptableLayer {
  std::string name{};
  std::shared_ptr<torch::nn::Module> module{};
  LayerCall::Operator op{};
  at::Tensor weight{};
  bool grouped = false;  ///< a convolution with groups
};

/// Those of a module whose members are registered: register_members().
std::vector<AdaptableLayer> adaptable_layers(torch::nn::Module const& root);

/// An adapter of a module, and its layer.
struct FoundAdapter {
  AdaptableLayer layer;
  std::shared_ptr<LoraAdapter> adapter;
};

inline constexpr char const* adapters_child = "lora";

/// The child of a layer that holds its adapters; null without.
std::shared_ptr<torch::nn::Module> adapters_of(torch::nn::Module const& layer);

/// All adapters of a module, those with a name if it is not empty.
std::vector<FoundAdapter> find_adapters(torch::nn::Module const& root, std::string_view name = {});

/// One of these that is merged into a tensor's memory, whatever names or views it has; null without.
FoundAdapter const* merged_into(at::Tensor const& tensor, std::vector<FoundAdapter> const& all);

/// The layer computes without this adapter, and has it no more.
void detach_adapter(FoundAdapter const& from);

/// Whether a layer's name is `target` or ends in it, as in PEFT, or fits it as a pattern.
bool is_target(std::string_view name, std::string_view target);

// Parameters that are trained as a whole beside an adapter (AlsoTrain): its head. There is one of
// each, so two adapters cannot have their own.

/// The name of the adapter that a tensor is the head of.
TensorMap<std::string>& heads();

/// Whether a parameter is in the file of this adapter, besides its matrices.
bool is_head_of(at::Tensor const& tensor, std::string_view adapter);

/// The parameters that patterns select by one of their names, each once.
std::vector<at::Tensor> parameters_named(torch::nn::Module const& module,
                                         std::vector<std::string_view> const& patterns);

/// SettingsError if one of these parameters is the head of another adapter of the module, which
/// training or loading this one would overwrite.
void require_own_heads(torch::nn::Module& module, std::vector<std::string_view> const& patterns,
                       std::string_view adapter);

}  // namespace frugal::detail

#ifndef FRUGAL_COMPILED
#include <frugal/model/lora/adapter.ipp>
#endif
