// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/model/quantize.hpp>

#include <frugal/inline.hpp>
#include <frugal/model/finite_weight.hpp>

#include <unordered_set>
#include <utility>

namespace frugal::detail {

FRUGAL_INLINE std::uint64_t stored_bytes(torch::nn::Module& module) {
  std::unordered_set<void const*> seen;
  std::uint64_t bytes = 0;
  auto const add = [&](at::Tensor const& tensor) {
    if (!tensor.defined() || !seen.insert(tensor.storage().unsafeGetStorageImpl()).second) return;
    bytes += tensor.storage().nbytes();
  };
  for (at::Tensor const& each : module.parameters()) add(each);
  for (at::Tensor const& each : module.buffers()) add(each);
  return bytes;
}

FRUGAL_INLINE std::vector<WeightedLayer> chosen_layers(torch::nn::Module& module,
                                                       QuantizeOptions const& options,
                                                       std::string const& where) {
  std::vector<WeightedLayer> layers = weighted_layers(module);
  std::vector<std::string> names;
  for (WeightedLayer const& each : layers) names.push_back(each.name);
  for (auto const& patterns : {options.only, options.except}) {
    if (patterns) patterns->require_in(names, where, "linear and convolutional layers");
  }
  std::erase_if(layers, [&](WeightedLayer const& each) {
    return (options.only && !options.only->matches(each.name)) ||
           (options.except && options.except->matches(each.name)) ||
           each.weight.scalar_type() != at::kFloat;
  });
  return layers;
}

FRUGAL_INLINE void require_layers(std::vector<WeightedLayer> const& layers, char const* format,
                                  char const* takes) {
  if (!layers.empty()) return;
  throw SettingsError({.what = "no layer of this module can be quantized",
                       .where = "quantize<" + std::string(format) + ">",
                       .why = std::string("it takes ") + takes +
                              " in FP32 that share no weight and are not quantized yet",
                       .fix = "Name such layers, or leave the module as it is."});
}

FRUGAL_INLINE std::shared_ptr<Int8Weight> int8_weight_of(WeightedLayer const& layer,
                                                         std::optional<InputGrid> grid) {
  at::NoGradGuard const no_gradients;
  at::Tensor const weight = layer.weight.detach().contiguous();
  Quantized const made = Int8Format::rows(weight.flatten(1));
  return std::make_shared<Int8Weight>(made.values.view(weight.sizes()), made.scales, grid);
}

FRUGAL_INLINE void refuse_fake_layers(std::vector<WeightedLayer> const& layers, char const* where) {
  for (WeightedLayer const& layer : layers) {
    if (!layer.module->named_children().contains(fake_child)) continue;
    throw SettingsError({.what = "layer '" + layer.name + "' is trained with Qat",
                         .where = where,
                         .why = "it would be rounded twice, and its ranges would be lost",
                         .fix = "Call convert(module)."});
  }
}

FRUGAL_INLINE void require_finite(std::vector<WeightedLayer> const& layers, char const* where) {
  for (WeightedLayer const& layer : layers) require_finite(layer.weight, layer.name, where);
}

FRUGAL_INLINE void put_in(WeightedLayer const& layer, std::shared_ptr<QuantizedWeight> weight) {
  weight->train(layer.module->is_training());
  layer.module->register_module(quantized_child, weight);
  drop_weight(*layer.module, layer.weight);
  intercept(layer.weight, std::make_shared<QuantizedLayer>(std::move(weight)));
}

FRUGAL_INLINE void require_seen(WeightedLayer const& layer, SeenInput const& seen) {
  if (seen.any() && seen.finite()) return;
  throw StateError({.what = seen.any() ? "the input of layer '" + layer.name + "' is not finite"
                                       : "layer '" + layer.name + "' was not called",
                    .where = "quantize<INT8>",
                    .why = "its range is that of its input over the source",
                    .fix = seen.any() ? "Check the source and the weights."
                                      : "Leave it out with QuantizeOptions::except, or give a pass "
                                        "that calls it."});
}

}  // namespace frugal::detail

namespace frugal {

FRUGAL_INLINE std::ostream& operator<<(std::ostream& out, Sensitivity const& found) {
  out << "loss " << found.loss << '\n';
  for (LayerSensitivity const& each : found.layers) {
    out << "  " << each.layer << ": " << std::showpos << each.change << std::noshowpos << '\n';
  }
  return out;
}

}  // namespace frugal
