// SPDX-License-Identifier: Apache-2.0
// Shapes: B images, C channels (1 or 3), H rows, W columns.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <ATen/ATen.h>

#include <frugal/core/source/sample_set.hpp>
#include <frugal/data/image/check_images.hpp>
#include <frugal/data/image/colour.hpp>
#include <frugal/data/image/rows_of.hpp>
#include <frugal/data/sampling/draw.hpp>

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
  Plan plan(SampleKey const& key) const;

  std::string identity() const;

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

  at::Tensor one_by_one(at::Tensor const& images, std::vector<Plan> const& plans) const;

  /// The images whose change at this turn is `change`.
  at::Tensor changed(at::Tensor const& images, std::vector<Plan> const& plans, std::size_t turn,
                     int change) const;
};

}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/data/image/colour_jitter.ipp>
#endif
