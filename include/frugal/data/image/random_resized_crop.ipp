// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/data/image/random_resized_crop.hpp>

#include <frugal/data/image/transform_text.hpp>
#include <frugal/inline.hpp>

#include <algorithm>
#include <cmath>

namespace frugal {

FRUGAL_INLINE at::Tensor resized_crop(at::Tensor const& images, Box const& box, std::int64_t height,
                                      std::int64_t width, ResizeOptions const& options) {
  return resize(images.narrow(-2, box.top, box.height).narrow(-1, box.left, box.width), height,
                width, options);
}

FRUGAL_INLINE Box RandomResizedCrop::box(SampleKey const& key, std::int64_t of_height,
                                         std::int64_t of_width) const {
  Draw draw(key, stream);
  auto const rounded = [](double x) { return static_cast<std::int64_t>(std::nearbyint(x)); };
  auto const place = [&](std::int64_t spare) {
    return static_cast<std::int64_t>(draw.below(static_cast<std::uint64_t>(spare) + 1));
  };
  auto const rows = static_cast<double>(of_height), columns = static_cast<double>(of_width);
  constexpr int attempts = 10;  // torchvision's
  for (int i = 0; i < attempts; ++i) {
    double const target = rows * columns * draw.uniform(area[0], area[1]);
    double const ratio = std::exp(draw.uniform(std::log(aspect[0]), std::log(aspect[1])));
    std::int64_t const w = rounded(std::sqrt(target * ratio));
    std::int64_t const h = rounded(std::sqrt(target / ratio));
    if (w < 1 || w > of_width || h < 1 || h > of_height) continue;
    std::int64_t const top = place(of_height - h);
    return {.top = top, .left = place(of_width - w), .height = h, .width = w};
  }
  // The largest box in the middle whose shape is allowed.
  std::int64_t const h = std::clamp<std::int64_t>(rounded(columns / aspect[0]), 1, of_height);
  std::int64_t const w = std::clamp<std::int64_t>(rounded(rows * aspect[1]), 1, of_width);
  return {.top = (of_height - h) / 2, .left = (of_width - w) / 2, .height = h, .width = w};
}

FRUGAL_INLINE std::string RandomResizedCrop::identity() const {
  return detail::image_transform_text("RandomResizedCrop", 1, height, width, area, aspect,
                                      static_cast<int>(options.interpolation), options.antialias,
                                      stream);
}

}  // namespace frugal
