// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <tuple>
#include <vector>

#include <frugal/core/compose/rational.hpp>
#include <frugal/error.hpp>
#include <frugal/inline.hpp>
#include <frugal/model/prune/masked_weights.hpp>

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
      "Sparsity<0.9_r>.");
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

  static constexpr double share(std::uint64_t step) {
    double const left = 1 - static_cast<double>(step < Steps ? step : Steps) / Steps;
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
FRUGAL_INLINE at::Tensor mask_of_highest(at::Tensor const& keys, at::Tensor const& mask,
                                         double share) {
  at::Tensor const known = mask.reshape({-1});
  double const lowest = -std::numeric_limits<double>::infinity();
  at::Tensor const ranked = keys.reshape({-1}).masked_fill(known.logical_not(), lowest);
  auto const pruned =
      static_cast<std::int64_t>(std::nearbyint(share * static_cast<double>(ranked.numel())));
  at::Tensor result = known.clone();
  if (pruned == 0) return result;
  at::Tensor const at = std::get<1>(at::topk(ranked, pruned, 0, /*largest=*/false));
  return result.index_fill_(0, at, false);
}

/// Prunes the elements with the lowest keys. What is pruned stays so.
FRUGAL_INLINE void prune_lowest(MaskedWeights& masked, std::vector<at::Tensor> const& keys,
                                double share, bool globally) {
  at::NoGradGuard const no_gradients;
  auto& masks = masked.masks;
  if (!globally) {
    for (std::size_t i = 0; i < masks.size(); ++i) {
      masks[i].copy_(mask_of_highest(keys[i], masks[i], share).view(masks[i].sizes()));
    }
    return;
  }
  std::vector<at::Tensor> flat_keys, flat_masks;
  for (std::size_t i = 0; i < masks.size(); ++i) {
    flat_keys.push_back(keys[i].reshape({-1}).to(masks.front().device(), at::kFloat));
    flat_masks.push_back(masks[i].reshape({-1}).to(masks.front().device()));
  }
  at::Tensor const all = mask_of_highest(at::cat(flat_keys), at::cat(flat_masks), share);
  std::int64_t begin = 0;
  for (at::Tensor& mask : masks) {
    mask.copy_(all.narrow(0, begin, mask.numel()).view(mask.sizes()));
    begin += mask.numel();
  }
}

FRUGAL_INLINE std::vector<at::Tensor> magnitudes_of(MaskedWeights const& masked) {
  std::vector<at::Tensor> all;
  for (at::Tensor const& weight : masked.weights) all.push_back(weight.detach().abs());
  return all;
}

/// SettingsError for a weight whose rows do not consist of groups of `of`.
FRUGAL_INLINE void prune_n_of_m(MaskedWeights& masked, std::int64_t kept, std::int64_t of) {
  at::NoGradGuard const no_gradients;
  for (std::size_t i = 0; i < masked.weights.size(); ++i) {
    at::Tensor const& weight = masked.weights[i];
    if (weight.size(1) % of == 0) continue;
    throw SettingsError(
        {.what = "the inputs of '" + masked.names[i] + "' are no multiple of " + std::to_string(of),
         .where = "Prune<NofM<" + std::to_string(kept) + ", " + std::to_string(of) + ">>",
         .why = "there are " + std::to_string(weight.size(1)),
         .fix = "Name the weights to prune, without this one: Where<\"layer*\">."});
  }
  for (std::size_t i = 0; i < masked.weights.size(); ++i) {
    // Of a convolution the inputs are its channels, not the places of its kernel.
    at::Tensor const rows = masked.weights[i].detach().abs().movedim(1, -1);
    at::Tensor const groups = rows.reshape({-1, of});
    at::Tensor const least = std::get<1>(at::topk(groups, of - kept, 1, /*largest=*/false));
    at::Tensor const mask = at::ones_like(groups, at::kBool).scatter_(1, least, false);
    masked.masks[i].logical_and_(mask.view(rows.sizes()).movedim(-1, 1));
  }
}

}  // namespace detail
}  // namespace frugal
