// SPDX-License-Identifier: Apache-2.0
// Shapes: B images, C channels (1 or 3), H rows, W columns.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <ATen/ATen.h>

#include <frugal/data/image/check_images.hpp>
#include <frugal/data/image/colour.hpp>
#include <frugal/data/image/rows_of.hpp>
#include <frugal/data/image/transform_text.hpp>
#include <frugal/data/sample_set.hpp>
#include <frugal/data/sampling/draw.hpp>
#include <frugal/inline.hpp>

namespace frugal {

/// Random transform: changes brightness, contrast, saturation and hue, in an order of its own for
/// each image. The first three have a factor from max(0, 1 - x) to 1 + x, the hue a turn from -x to
/// x; 0 leaves a change out. Factors and order are drawn from each image's key.
///
/// Cost    about 5 operators for brightness, 10 for contrast and for saturation, 40 for hue, each
///         over all images once, in at most four parts; large images on the CPU one by one, which
///         keeps them in the cache.
/// Equal to  torchvision.transforms.v2.ColorJitter in distribution, and image by image in value.
struct ColourJitter {
  double brightness = 0;  ///< 0 or more
  double contrast = 0;    ///< 0 or more
  double saturation = 0;  ///< 0 or more
  double hue = 0;         ///< 0 to 0.5
  std::uint64_t stream = draw_stream("ColourJitter");

  /// What is done to an image: the changes (0 brightness, 1 contrast, 2 saturation, 3 hue) in their
  /// order, and the factor of each change.
  struct Plan {
    std::array<int, 4> order{0, 1, 2, 3};
    std::array<double, 4> factors{1, 1, 1, 0};
  };
  FRUGAL_INLINE Plan plan(SampleKey const& key) const {
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

  FRUGAL_INLINE std::string identity() const {
    return detail::image_transform_text("ColourJitter", 1, brightness, contrast, saturation, hue,
                                        stream);
  }

  at::Tensor operator()(at::Tensor const& images, std::span<SampleKey const> keys) const {
    detail::check_images(images, keys, "ColourJitter");
    detail::check_setting(brightness >= 0 && contrast >= 0 && saturation >= 0,
                          "a negative width of the jitter", "ColourJitter",
                          "Set brightness, contrast and saturation to 0 or more.");
    detail::check_setting(hue >= 0 && hue <= 0.5, "a hue outside of 0 to 0.5", "ColourJitter",
                          "Set hue to 0.5 at most: half a turn of the circle of colours.");
    std::vector<Plan> plans;
    plans.reserve(keys.size());
    for (SampleKey const& key : keys) plans.push_back(plan(key));
    if (brightness == 0 && contrast == 0 && saturation == 0 && hue == 0) return images;
    // Large images stay in the processor's cache only one at a time.
    constexpr std::int64_t large = std::int64_t{1} << 14;
    if (images.is_cpu() && images.numel() / images.size(0) >= large)
      return one_by_one(images, plans);
    at::Tensor out = images;
    for (std::size_t turn = 0; turn < 4; ++turn) {
      for (int const change : {0, 1, 2, 3}) out = changed(out, plans, turn, change);
    }
    return out;
  }

 private:
  static constexpr std::array changes{adjust_brightness, adjust_contrast, adjust_saturation,
                                      adjust_hue};

  bool leaves_out(int change) const {
    return std::array{brightness, contrast, saturation, hue}[static_cast<std::size_t>(change)] == 0;
  }

  FRUGAL_INLINE at::Tensor one_by_one(at::Tensor const& images,
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

  /// The images whose change at this turn is `change`.
  FRUGAL_INLINE at::Tensor changed(at::Tensor const& images, std::vector<Plan> const& plans,
                                   std::size_t turn, int change) const {
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
};

}  // namespace frugal
