// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/model/qat.hpp>

#include <frugal/error.hpp>
#include <frugal/inline.hpp>
#include <frugal/model/finite_weight.hpp>

#include <cstdint>
#include <utility>

namespace frugal::detail {

FRUGAL_INLINE MovingRanges::MovingRanges(double averaging)
    : FakeQuantized("MovingRanges"),
      averaging_(averaging),
      least_(register_buffer("least", at::full({}, infinity))),
      largest_(register_buffer("largest", at::full({}, -infinity))),
      scale_(register_buffer("scale", at::ones({1}))),
      zero_point_(register_buffer("zero_point", at::zeros({1}, at::kInt))) {}

FRUGAL_INLINE LearnedRanges::LearnedRanges(at::Tensor const& weight)
    : FakeQuantized("LearnedRanges"),
      weight_scale_(register_parameter(
          "weight_scale", weight.detach().flatten(1).abs().amax(1).div_(127).clamp_min_(smallest))),
      scale_(register_parameter("scale", at::ones({1}, weight.options()))),
      zero_point_(register_parameter("zero_point", at::zeros({1}, weight.options()))),
      begun_(register_buffer("begun", at::zeros({}, weight.options().dtype(at::kBool)))) {}

FRUGAL_INLINE bool LearnedRanges::begin(at::Tensor const& input) {
  if (input.numel() == 0) return false;
  at::NoGradGuard const no_gradients;
  auto const [least, largest] = at::aminmax(input.detach());
  if (!std::isfinite(least.item<double>()) || !std::isfinite(largest.item<double>())) return false;
  InputGrid const grid = InputGrid::of({least.item<double>(), largest.item<double>()});
  scale_.variable_data().fill_(grid.scale);
  zero_point_.variable_data().fill_(static_cast<double>(grid.zero_point));
  begun_.fill_(true);
  return true;
}

FRUGAL_INLINE void require_trainable(WeightedLayer const& layer) {
  if (layer.weight.requires_grad()) return;
  throw SettingsError({.what = "the weight of layer '" + layer.name + "' is frozen",
                       .where = "Qat<INT8>",
                       .why = "training cannot adapt it to the rounding of its range",
                       .fix = "Train it, or leave it out with Qat::layers.except and give it to "
                              "quantize<INT8> afterwards."});
}

FRUGAL_INLINE std::string quantized_weight_in(torch::nn::Module& root) {
  for (auto const& item : root.named_modules({}, /*include_self=*/false)) {
    if (std::dynamic_pointer_cast<QuantizedWeight>(item.value()) != nullptr) return item.key();
  }
  return {};
}

FRUGAL_INLINE void require_not_quantized(torch::nn::Module& root) {
  std::string const name = quantized_weight_in(root);
  if (name.empty()) return;
  throw SettingsError({.what = "'" + name + "' is quantized already, and its range is fixed",
                       .where = "Qat<INT8>",
                       .why = "there is no FP32 weight left to train",
                       .fix = "Use Qat on the module before quantize or convert."});
}

FRUGAL_INLINE QuantizedModule convert_layers(torch::nn::Module& root) {
  struct Found {
    WeightedLayer layer;
    std::shared_ptr<FakeQuantized> fake;
  };
  std::vector<Found> found;
  for (WeightedLayer const& layer : weighted_layers(root)) {
    std::shared_ptr<torch::nn::Module> const* const child =
        layer.module->named_children().find(fake_child);
    if (child == nullptr) continue;
    auto fake = std::dynamic_pointer_cast<FakeQuantized>(*child);
    if (!fake->ranged()) {
      throw StateError({.what = "layer '" + layer.name + "' has no range of its input",
                        .where = "convert",
                        .why = "no training step has called it, or its input was not finite",
                        .fix = "Train it with Qat first, or load weights that were."});
    }
    require_finite(layer.weight, layer.name, "convert");
    for (at::Tensor const& scale : fake->parameters()) {
      if (scale.isfinite().all().item<bool>()) continue;
      throw StateError({.what = "the learned scales of layer '" + layer.name + "' are not finite",
                        .where = "convert",
                        .why = "training has diverged",
                        .fix = "Return to an earlier checkpoint, and lower the learning rate."});
    }
    found.push_back({layer, std::move(fake)});
  }
  if (found.empty()) {
    throw StateError({.what = "no layer of this module was trained with Qat",
                      .where = "convert",
                      .why = "it makes quantized weights of fake ones",
                      .fix = "Train with Qat first, or call quantize<INT8>."});
  }
  QuantizedModule made{.layers = {}, .bytes_before = stored_bytes(root)};
  for (Found const& each : found) {
    WeightedLayer const& layer = each.layer;
    Quantized const integers = each.fake->integers(layer.weight);
    release(layer.weight, *each.fake->hook);
    layer.module->unregister_module(fake_child);
    put_in(layer, std::make_shared<Int8Weight>(integers.values.view(layer.weight.sizes()),
                                               integers.scales, each.fake->grid()));
    made.layers.push_back(layer.name);
  }
  fold_batch_norm(root);
  made.bytes = stored_bytes(root);
  return made;
}

}  // namespace frugal::detail
