// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/data/image/colour_jitter.hpp>

#include <frugal/data/image/transform_text.hpp>
#include <frugal/inline.hpp>

#include <algorithm>
#include <utility>

namespace frugal {

FRUGAL_INLINE ColourJitter::Plan ColourJitter::plan(SampleKey const& key) const {
  Draw draw(key, stream);
  Plan plan;
  for (std::size_t i = 4; i > 1; --i) std::swap(plan.order[i - 1], plan.order[draw.below(i)]);
  std::array const widths{brightness, contrast, saturation};
  for (std::size_t i = 0; i < widths.size(); ++i) {
    plan.factors[i] = draw.uniform(std::max(0.0, 1 - widths[i]), 1 + widths[i]);
  }
  plan.factors[3] = draw.uniform(-hue, hue);
  return plan;
}

FRUGAL_INLINE std::string ColourJitter::identity() const {
  return detail::image_transform_text("ColourJitter", 1, brightness, contrast, saturation, hue,
                                      stream);
}

FRUGAL_INLINE at::Tensor ColourJitter::one_by_one(at::Tensor const& images,
                                                  std::vector<Plan> const& plans) const {
  at::Tensor out = at::empty_like(images);
  for (std::size_t b = 0; b < plans.size(); ++b) {
    auto const row = static_cast<std::int64_t>(b);
    at::Tensor image = images.narrow(0, row, 1);
    for (int const change : plans[b].order) {
      if (leaves_out(change)) continue;
      auto const which = static_cast<std::size_t>(change);
      image = changes[which](image, std::span(plans[b].factors).subspan(which, 1));
    }
    out.narrow(0, row, 1).copy_(image);
  }
  return out;
}

FRUGAL_INLINE at::Tensor ColourJitter::changed(at::Tensor const& images,
                                               std::vector<Plan> const& plans, std::size_t turn,
                                               int change) const {
  if (leaves_out(change)) return images;
  std::vector<std::int64_t> rows;
  std::vector<double> factors;
  for (std::size_t b = 0; b < plans.size(); ++b) {
    if (plans[b].order[turn] != change) continue;
    rows.push_back(static_cast<std::int64_t>(b));
    factors.push_back(plans[b].factors[static_cast<std::size_t>(change)]);
  }
  return detail::change_rows(images, rows, [&](at::Tensor const& some) {
    return changes[static_cast<std::size_t>(change)](some, factors);
  });
}

}  // namespace frugal
