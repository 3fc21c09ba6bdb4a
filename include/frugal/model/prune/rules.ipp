// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/model/prune/rules.hpp>

#include <frugal/error.hpp>
#include <frugal/inline.hpp>

#include <cmath>
#include <cstddef>
#include <limits>
#include <string>
#include <tuple>

namespace frugal::detail {

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

}  // namespace frugal::detail
