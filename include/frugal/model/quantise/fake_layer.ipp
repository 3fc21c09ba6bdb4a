// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/model/quantise/fake_layer.hpp>

#include <frugal/inline.hpp>

namespace frugal::detail {

FRUGAL_INLINE MovingRanges::MovingRanges(double averaging)
    : FakeQuantised("MovingRanges"),
      averaging_(averaging),
      least_(register_buffer("least", at::full({}, infinity))),
      largest_(register_buffer("largest", at::full({}, -infinity))),
      scale_(register_buffer("scale", at::ones({1}))),
      zero_point_(register_buffer("zero_point", at::zeros({1}, at::kInt))) {}

FRUGAL_INLINE LearnedRanges::LearnedRanges(at::Tensor const& weight)
    : FakeQuantised("LearnedRanges"),
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

}  // namespace frugal::detail
