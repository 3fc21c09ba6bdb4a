// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/model/masked_weights.hpp>

#include <frugal/error.hpp>
#include <frugal/inline.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <tuple>

namespace frugal::detail {

FRUGAL_INLINE at::Tensor packed_bits(at::Tensor const& mask) {
  at::Tensor bits = mask.reshape({-1}).to(at::kByte);
  bits = at::constant_pad_nd(bits, {0, (8 - bits.size(0) % 8) % 8}).view({-1, 8});
  at::Tensor const place = at::arange(8, bits.options());
  return at::bitwise_left_shift(bits, place).sum(1, /*keepdim=*/false, at::kByte);
}

FRUGAL_INLINE at::Tensor unpacked_bits(at::Tensor const& packed, at::IntArrayRef shape) {
  at::Tensor const place = at::arange(8, packed.options());
  at::Tensor const bits = at::bitwise_right_shift(packed.unsqueeze(1), place).bitwise_and(1);
  return bits.view({-1}).narrow(0, 0, c10::multiply_integers(shape)).to(at::kBool).view(shape);
}

FRUGAL_INLINE std::unordered_set<at::TensorImpl const*> matrices_of(torch::nn::Module& module) {
  std::unordered_set<at::TensorImpl const*> all;
  module.apply([&](torch::nn::Module& part) {
    auto const look = [&](auto* layer) {
      if (layer != nullptr && layer->weight.defined())
        all.insert(layer->weight.unsafeGetTensorImpl());
    };
    look(dynamic_cast<torch::nn::LinearImpl*>(&part));
    look(dynamic_cast<torch::nn::Conv1dImpl*>(&part));
    look(dynamic_cast<torch::nn::Conv2dImpl*>(&part));
    look(dynamic_cast<torch::nn::Conv3dImpl*>(&part));
  });
  return all;
}

FRUGAL_INLINE void MaskedWeights::select(torch::nn::Module& module, Parameters const& parameters,
                                         std::optional<NamePatterns> const& where,
                                         std::string const& who) {
  names.clear(), weights.clear(), masks.clear();
  auto const matrices = matrices_of(module);
  // A weight may have a second name, which is as good.
  auto const all = module.named_parameters();
  std::vector<std::string> known;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    at::Tensor const& each = parameters.tensors[i];
    if (each.dim() < 2 || !each.is_floating_point()) continue;
    bool named = false;
    static_cast<void>(parameters.any_name(i, [&](std::string const& name) {
      known.push_back(name);
      named = named || (where && where->matches(name));
      return false;  // all names are known
    }));
    bool const chosen = where ? named : matrices.contains(each.unsafeGetTensorImpl());
    if (!chosen) continue;
    names.push_back(parameters.names[i]);
    weights.push_back(each);
    masks.push_back(at::ones_like(each, at::TensorOptions().dtype(at::kBool).requires_grad(false)));
  }
  if (where) where->require_in(known, who, "parameters with two dimensions or more");
  if (!weights.empty()) return;
  throw SettingsError({.what = "there is nothing to prune",
                       .where = who,
                       .why = matrices.empty()
                                  ? "the module has no linear or convolutional layer"
                                  : "its linear and convolutional layers are not trained (Freeze, "
                                    "Lora, quantize)",
                       .fix = "Name the parameters to prune: Where<\"*.kernel\">."});
}

FRUGAL_INLINE void MaskedWeights::mask_gradients() const {
  at::NoGradGuard const no_gradients;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    if (at::Tensor const& gradient = weights[i].grad(); gradient.defined()) {
      gradient.mul_(masks[i]);
    }
  }
}

FRUGAL_INLINE void MaskedWeights::mask_weights() const {
  at::NoGradGuard const no_gradients;
  for (std::size_t i = 0; i < weights.size(); ++i) weights[i].mul_(masks[i]);
}

FRUGAL_INLINE double MaskedWeights::sparsity() const {
  std::int64_t kept = 0;
  std::int64_t all = 0;
  for (at::Tensor const& mask : masks) {
    kept += mask.sum().item<std::int64_t>();
    all += mask.numel();
  }
  return all == 0 ? 0 : 1 - static_cast<double>(kept) / static_cast<double>(all);
}

FRUGAL_INLINE bool MaskedWeights::holds() const {
  at::NoGradGuard const no_gradients;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    if (weights[i].masked_fill(masks[i], 0).any().item<bool>()) return false;
  }
  return true;
}

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
