// SPDX-License-Identifier: Apache-2.0
// Shapes: B images, C channels, H rows, W columns.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <ATen/ATen.h>

#include <frugal/core/source/sample_set.hpp>
#include <frugal/data/image/check_images.hpp>
#include <frugal/data/image/rows_of.hpp>
#include <frugal/data/image/transform_text.hpp>
#include <frugal/data/sampling/draw.hpp>

namespace frugal {

/// Random transform: mirrors an image with `probability`, drawn from its own key.
///
/// Cost  a copy of the images; if all or none are mirrored, no more than that.
struct RandomFlip {
  double probability = 0.5;
  bool vertical = false;  ///< upside down, instead of left to right
  std::uint64_t stream = draw_stream("RandomFlip");

  bool flips(SampleKey const& key) const { return Draw(key, stream).chance(probability); }

  std::string identity() const {
    return detail::image_transform_text("RandomFlip", 1, probability, vertical, stream);
  }

  at::Tensor operator()(at::Tensor const& images, std::span<SampleKey const> keys) const {
    detail::check_images(images, keys, "RandomFlip");
    std::vector<std::int64_t> mirrored;
    for (std::size_t b = 0; b < keys.size(); ++b) {
      if (flips(keys[b])) mirrored.push_back(static_cast<std::int64_t>(b));
    }
    return detail::change_rows(
        images, mirrored, [&](at::Tensor const& some) { return some.flip(vertical ? -2 : -1); });
  }
};

}  // namespace frugal
