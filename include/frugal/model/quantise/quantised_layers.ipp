// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/model/quantise/quantised_layers.hpp>

#include <frugal/core/libtorch/layer_tensors.hpp>
#include <frugal/error.hpp>
#include <frugal/inline.hpp>

#include <variant>

namespace frugal::detail {

FRUGAL_INLINE bool is_plain(torch::nn::Conv2dImpl const& layer) {
  auto const& padding = layer.options.padding();
  return layer.options.groups() == 1 && !std::holds_alternative<torch::enumtype::kSame>(padding);
}

FRUGAL_INLINE std::vector<WeightedLayer> weighted_layers(torch::nn::Module& root) {
  register_members(root);
  TensorPlaceCounts const places(root);
  std::vector<WeightedLayer> found;
  auto const look = [&](std::string const& name, torch::nn::Module& module) {
    if (auto const* const linear = module.as<torch::nn::LinearImpl>()) {
      found.push_back({name, &module, linear->weight});
    } else if (auto const* const convolution = module.as<torch::nn::Conv2dImpl>()) {
      if (is_plain(*convolution)) found.push_back({name, &module, convolution->weight});
    }
  };
  // A module may be on the stack, and then has no pointer of itself.
  for (auto const& item : root.named_modules(/*name_prefix=*/{}, /*include_self=*/false)) {
    look(item.key(), *item.value());
  }
  look("", root);
  std::erase_if(found, [&](WeightedLayer const& each) {
    // One that is quantised has none any more, and one that a forward pass computes is not its own.
    at::Tensor const* const own = own_parameters(*each.module).find("weight");
    return own == nullptr || !own->is_same(each.weight) || places.shared(each.weight);
  });
  return found;
}

}  // namespace frugal::detail
