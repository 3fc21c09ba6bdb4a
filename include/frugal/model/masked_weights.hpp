// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <torch/nn/module.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

#include <frugal/core/compose/rational.hpp>
#include <frugal/core/libtorch/parameters.hpp>
#include <frugal/core/state/state_reader.hpp>
#include <frugal/model/where.hpp>

namespace frugal::detail {

/// A mask's bits, eight to a byte: what a checkpoint has of it.
at::Tensor packed_bits(at::Tensor const& mask);
at::Tensor unpacked_bits(at::Tensor const& packed, at::IntArrayRef shape);

/// The weights of the layers that multiply by a matrix: linear and convolutional ones.
std::unordered_set<at::TensorImpl const*> matrices_of(torch::nn::Module& module);

/// Weights, and which of their elements are kept. Pruned ones are zeros in the weights themselves.
class MaskedWeights {
 public:
  /// Takes the parameters that match `where`, or the matrices of the module; keeps all elements.
  /// SettingsError if there is none; `who` names the policy.
  void select(torch::nn::Module& module, Parameters const& parameters,
              std::optional<NamePatterns> const& where, std::string const& who);

  /// No step may move what is pruned: a norm of the gradients is then that of what trains.
  void mask_gradients() const;
  /// Momentum and weight decay may have moved what is pruned. A product, so that a NaN stays seen.
  void mask_weights() const;

  /// The share of pruned elements.
  double sparsity() const;
  /// Whether every pruned element of the weights is zero.
  bool holds() const;

  template <class Archive>
  void persist(Archive& archive) {
    archive.scope("masks", [&](auto& inner) {
      for (std::size_t i = 0; i < names.size(); ++i) {
        at::Tensor bits;
        if constexpr (!Archive::loading) bits = packed_bits(masks[i]);
        inner(names[i], bits);
        if constexpr (Archive::loading) {
          auto const to = destination(archive).value_or(masks[i].device());
          at::Tensor const loaded = unpacked_bits(bits.to(to), weights[i].sizes());
          // Existing memory is filled: a captured step reads it.
          if (to == masks[i].device()) {
            masks[i].copy_(loaded);
          } else {
            masks[i] = loaded.contiguous();
          }
        }
      }
    });
  }

  std::vector<std::string> names;
  std::vector<at::Tensor> weights;
  std::vector<at::Tensor> masks;  ///< of bool: true is kept
};

}  // namespace frugal::detail

namespace frugal {

/// Prunes the smallest weights. Masks as torch.nn.utils.prune's l1_unstructured, and with Global as
/// its global_unstructured.
struct Magnitude {};

/// Prunes the weights that moved towards zero: those with the largest sum of gradient times weight
/// over the steps so far (Sanh, Wolf and Rush, "Movement pruning", 2020). For fine-tuning, where a
/// weight's size is the former task's.
struct Movement {};

/// Keeps the `N` largest of each `M` consecutive weights of a row, along the inputs: 2 of 4 is what
/// sparse tensor cores multiply. Masks as torch.ao.pruning's WeightNormSparsifier.
template <std::int64_t N = 2, std::int64_t M = 4>
struct NofM {
  static_assert(0 < N && N < M,
                "frugal: NofM<N, M> keeps N of each M weights: N is at least 1 and less than M. "
                "Write NofM<2, 4>.");
  static constexpr std::int64_t kept = N;
  static constexpr std::int64_t of = M;
};

/// The share of weights that are pruned in the end.
template <Rational Share>
struct Sparsity {
  static_assert(
      0 < Share.value() && Share.value() < 1,
      "frugal: Sparsity<share>: the share of pruned weights is above 0 and below 1. Write "
      "Sparsity<0.9>.");
  static constexpr double value = Share.value();
};

/// Ranks the weights of all layers together; without it, each layer gets the same sparsity.
struct Global {};

/// Over so many steps the sparsity grows from 0 to its end, fast at first (Zhu and Gupta, "To prune,
/// or not to prune", 2017).
template <std::uint64_t Steps>
struct Cubic {
  static_assert(Steps > 0, "frugal: Cubic<0> has no steps. Write Cubic<1000>, or leave it out.");
  static constexpr std::uint64_t steps = Steps;

  /// Of the end's sparsity, at a step of `all`.
  static constexpr double share(std::uint64_t step, std::uint64_t all) {
    double const left = 1 - static_cast<double>(step < all ? step : all) / static_cast<double>(all);
    return 1 - left * left * left;
  }
};

namespace detail {

template <class T>
inline constexpr bool is_n_of_m = false;
template <std::int64_t N, std::int64_t M>
inline constexpr bool is_n_of_m<NofM<N, M>> = true;
template <class T>
concept PruningRule = std::same_as<T, Magnitude> || std::same_as<T, Movement> || is_n_of_m<T>;

template <class T>
inline constexpr bool is_sparsity = false;
template <Rational Share>
inline constexpr bool is_sparsity<Sparsity<Share>> = true;
template <class T>
inline constexpr bool is_cubic = false;
template <std::uint64_t Steps>
inline constexpr bool is_cubic<Cubic<Steps>> = true;
template <class T>
inline constexpr bool is_where = false;
template <fixed_string... Patterns>
inline constexpr bool is_where<Where<Patterns...>> = true;

namespace option {

struct sparsity {
  template <class O>
  static constexpr bool has = is_sparsity<O>;
};
struct global {
  template <class O>
  static constexpr bool has = std::same_as<O, Global>;
};
struct cubic {
  template <class O>
  static constexpr bool has = is_cubic<O>;
};
struct where {
  template <class O>
  static constexpr bool has = is_where<O>;
};

}  // namespace option

/// The mask of what remains if the share of elements with the lowest keys is pruned. Elements that
/// are pruned already come first. The count is rounded as Python does, to even.
at::Tensor mask_of_highest(at::Tensor const& keys, at::Tensor const& mask, double share);

/// Prunes the elements with the lowest keys. What is pruned stays so.
void prune_lowest(MaskedWeights& masked, std::vector<at::Tensor> const& keys, double share,
                  bool globally);

std::vector<at::Tensor> magnitudes_of(MaskedWeights const& masked);

/// SettingsError for a weight whose rows do not consist of groups of `of`.
void prune_n_of_m(MaskedWeights& masked, std::int64_t kept, std::int64_t of);

}  // namespace detail
}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/model/masked_weights.ipp>
#endif
