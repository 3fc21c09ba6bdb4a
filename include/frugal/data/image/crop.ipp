// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/data/image/crop.hpp>

#include <frugal/inline.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <utility>

namespace frugal::detail {

FRUGAL_INLINE void check_boxes(at::Tensor const& images, std::span<Box const> boxes) {
  check_images(images, "crop");
  auto const refuse = [&](std::string why) {
    throw ShapeError({.what = "the boxes do not fit the images",
                      .where = "crop",
                      .why = std::move(why),
                      .fix = "Give each of the images one box within it, all of one size."});
  };
  if (images.dim() != 4 || boxes.empty() || std::cmp_not_equal(boxes.size(), images.size(0))) {
    refuse(std::to_string(boxes.size()) + " boxes were given for images of " + shape_text(images));
  }
  for (std::size_t i = 0; i < boxes.size(); ++i) {
    Box const& box = boxes[i];
    if (box.height != boxes[0].height || box.width != boxes[0].width) {
      refuse("boxes 0 and " + std::to_string(i) + " have two sizes");
    }
    if (box.top < 0 || box.left < 0 || box.height < 1 || box.width < 1 ||
        box.height > images.size(2) - box.top || box.width > images.size(3) - box.left) {
      refuse("box " + std::to_string(i) + " is not within its image");
    }
  }
}

}  // namespace frugal::detail

namespace frugal {

FRUGAL_INLINE at::Tensor centre_crop(at::Tensor const& images, std::int64_t height,
                                     std::int64_t width) {
  detail::check_images(images, "centre_crop");
  detail::check_setting(height > 0 && width > 0, "a size below 1 pixel", "centre_crop",
                        "Set height and width to 1 or more.");
  std::int64_t const more_rows = std::max<std::int64_t>(height - images.size(-2), 0);
  std::int64_t const more_columns = std::max<std::int64_t>(width - images.size(-1), 0);
  at::Tensor large = images;
  if (more_rows > 0 || more_columns > 0) {
    std::array const border{more_columns / 2, (more_columns + 1) / 2, more_rows / 2,
                            (more_rows + 1) / 2};
    large = at::constant_pad_nd(images, border, 0);
  }
  // Halves go to the even number, as Python rounds.
  auto const middle = [](std::int64_t spare) {
    return static_cast<std::int64_t>(std::nearbyint(static_cast<double>(spare) / 2));
  };
  return large.narrow(-2, middle(large.size(-2) - height), height)
      .narrow(-1, middle(large.size(-1) - width), width);
}

FRUGAL_INLINE at::Tensor crop(at::Tensor const& images, std::span<Box const> boxes) {
  detail::check_boxes(images, boxes);
  at::Tensor out = detail::empty_images(images, boxes[0].height, boxes[0].width);
  std::vector<Patch> patches;
  patches.reserve(boxes.size());
  for (Box const& box : boxes) {
    auto const row = static_cast<std::int64_t>(patches.size());
    patches.push_back({.from = row, .box = box, .to = row});
  }
  detail::paste(images, out, patches);
  return out;
}

FRUGAL_INLINE Box RandomCrop::box(SampleKey const& key, std::int64_t of_height,
                                  std::int64_t of_width) const {
  Draw draw(key, stream);
  auto const place = [&](std::int64_t spare) {
    return static_cast<std::int64_t>(draw.below(static_cast<std::uint64_t>(spare) + 1));
  };
  std::int64_t const top = place(of_height - height);
  return {.top = top, .left = place(of_width - width), .height = height, .width = width};
}

}  // namespace frugal
