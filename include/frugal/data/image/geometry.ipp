// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/data/image/geometry.hpp>

#include <frugal/data/image/image_batch.hpp>
#include <frugal/inline.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <optional>
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

/// Half of the pixels that are left over, rounded as Python rounds: halves go to the even number.
FRUGAL_INLINE std::int64_t middle(std::int64_t spare) {
  return static_cast<std::int64_t>(std::nearbyint(static_cast<double>(spare) / 2));
}

}  // namespace frugal::detail

namespace frugal {

FRUGAL_INLINE std::string RandomFlip::identity() const {
  std::string text = detail::image_transform_text("RandomFlip", 1, probability, vertical, stream);
  if (keypoint_pairs) {
    for (auto const& pair : *keypoint_pairs) text += detail::image_transform_text("pair", 1, pair);
  }
  return text;
}

FRUGAL_INLINE AnnotatedImage RandomFlip::operator()(AnnotatedImage sample,
                                                    SampleKey const& key) const {
  detail::check_annotated(sample, "RandomFlip");
  auto const order = detail::mirrored_order(sample, keypoint_pairs);
  if (!flips(key)) return sample;
  detail::flip_annotations(sample, vertical, order);
  sample.data = sample.data.flip(vertical ? -2 : -1);
  return sample;
}

FRUGAL_INLINE at::Tensor center_crop(at::Tensor const& images, std::int64_t height,
                                     std::int64_t width) {
  detail::check_images(images, "center_crop");
  detail::check_setting(height > 0 && width > 0, "a size below 1 pixel", "center_crop",
                        "Set height and width to 1 or more.");
  std::int64_t const more_rows = std::max<std::int64_t>(height - images.size(-2), 0);
  std::int64_t const more_columns = std::max<std::int64_t>(width - images.size(-1), 0);
  at::Tensor large = images;
  if (more_rows > 0 || more_columns > 0) {
    std::array const border{more_columns / 2, (more_columns + 1) / 2, more_rows / 2,
                            (more_rows + 1) / 2};
    large = at::constant_pad_nd(images, border, 0);
  }
  return large.narrow(-2, detail::middle(large.size(-2) - height), height)
      .narrow(-1, detail::middle(large.size(-1) - width), width);
}

FRUGAL_INLINE AnnotatedImage CenterCrop::operator()(AnnotatedImage sample) const {
  detail::check_annotated(sample, "CenterCrop");
  at::Tensor const cropped = center_crop(sample.data, height, width);
  // Where the crop begins: before the image, if that gets a border.
  auto const begin = [](std::int64_t spare) {
    return spare < 0 ? -(-spare / 2) : detail::middle(spare);
  };
  detail::crop_annotations(sample,
                           {.top = begin(sample.data.size(1) - height),
                            .left = begin(sample.data.size(2) - width),
                            .height = height,
                            .width = width},
                           visible);
  sample.data = cropped;
  return sample;
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

FRUGAL_INLINE AnnotatedImage RandomCrop::operator()(AnnotatedImage sample,
                                                    SampleKey const& key) const {
  detail::check_annotated(sample, "RandomCrop");
  at::Tensor const cropped = (*this)(sample.data.unsqueeze(0), std::span(&key, 1)).squeeze(0);
  Box where = box(key, sample.data.size(1) + 2 * padding, sample.data.size(2) + 2 * padding);
  where.top -= padding;
  where.left -= padding;
  detail::crop_annotations(sample, where, visible);
  sample.data = cropped;
  return sample;
}

}  // namespace frugal

namespace frugal::detail {

FRUGAL_INLINE at::Tensor resized(at::Tensor const& images_BCHW, at::IntArrayRef size,
                                 ResizeOptions const& options) {
  std::optional<double> const from_sizes;
  switch (options.interpolation) {
    case Interpolation::bilinear:
      return options.antialias
                 ? at::_upsample_bilinear2d_aa(images_BCHW, size, false, from_sizes, from_sizes)
                 : at::upsample_bilinear2d(images_BCHW, size, false, from_sizes, from_sizes);
    case Interpolation::bicubic:
      return options.antialias
                 ? at::_upsample_bicubic2d_aa(images_BCHW, size, false, from_sizes, from_sizes)
                 : at::upsample_bicubic2d(images_BCHW, size, false, from_sizes, from_sizes);
    case Interpolation::nearest:
      break;
  }
  return at::upsample_nearest2d(images_BCHW, size, from_sizes, from_sizes);
}

}  // namespace frugal::detail

namespace frugal {

FRUGAL_INLINE at::Tensor resize(at::Tensor const& images, std::int64_t height, std::int64_t width,
                                ResizeOptions const& options) {
  detail::check_images(images, "resize");
  detail::check_setting(height > 0 && width > 0, "a size below 1 pixel", "resize",
                        "Set height and width to 1 or more.");
  if (images.size(-2) == height && images.size(-1) == width) return images;
  at::Tensor batch = images;
  while (batch.dim() < 4) batch = batch.unsqueeze(0);
  if (batch.dim() > 4) batch = batch.flatten(0, -4);
  if (batch.size(0) == 1 && batch.size(1) > 1 &&
      batch.is_contiguous(at::MemoryFormat::ChannelsLast)) {
    // A decoder's image: with the strides of a batch the operator writes its order of memory, too,
    // instead of packing it (https://github.com/pytorch/pytorch/issues/68430).
    std::int64_t const channels = batch.size(1), row = batch.size(3) * channels;
    batch = batch.as_strided(batch.sizes(), {batch.numel(), 1, row, channels});
  }
  std::array const size{height, width};
  bool const cast = images.scalar_type() == at::kByte && !images.is_cpu() &&
                    options.interpolation != Interpolation::nearest;
  batch = detail::resized(cast ? batch.to(at::kFloat) : batch, size, options);
  // Bicubic weights overshoot.
  if (cast) batch = batch.round_().clamp_(0, 255).to(at::kByte);
  auto shape = images.sizes().vec();
  shape[shape.size() - 2] = height;
  shape[shape.size() - 1] = width;
  return batch.reshape(shape);
}

FRUGAL_INLINE at::Tensor resize_shorter(at::Tensor const& images, std::int64_t size,
                                        ResizeOptions const& options) {
  detail::check_images(images, "resize_shorter");
  std::int64_t const height = images.size(-2), width = images.size(-1);
  std::int64_t const longer = size * std::max(height, width) / std::min(height, width);
  return width <= height ? resize(images, longer, size, options)
                         : resize(images, size, longer, options);
}

FRUGAL_INLINE AnnotatedImage Resize::operator()(AnnotatedImage sample) const {
  detail::check_annotated(sample, "Resize");
  at::Tensor const resized = (*this)(sample.data);
  detail::resize_annotations(sample, resized.size(1), resized.size(2));
  sample.data = resized;
  return sample;
}

FRUGAL_INLINE AnnotatedImage ResizeShorter::operator()(AnnotatedImage sample) const {
  detail::check_annotated(sample, "ResizeShorter");
  at::Tensor const resized = (*this)(sample.data);
  detail::resize_annotations(sample, resized.size(1), resized.size(2));
  sample.data = resized;
  return sample;
}

FRUGAL_INLINE std::string Resize::identity() const {
  return detail::image_transform_text("Resize", 1, height, width,
                                      static_cast<int>(options.interpolation), options.antialias);
}

FRUGAL_INLINE std::string ResizeShorter::identity() const {
  return detail::image_transform_text("ResizeShorter", 1, size,
                                      static_cast<int>(options.interpolation), options.antialias);
}

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
                                      visible, stream);
}

FRUGAL_INLINE AnnotatedImage RandomResizedCrop::operator()(AnnotatedImage sample,
                                                           SampleKey const& key) const {
  detail::check_annotated(sample, "RandomResizedCrop");
  at::Tensor const cropped = (*this)(sample.data.unsqueeze(0), std::span(&key, 1)).squeeze(0);
  Box const where = box(key, sample.data.size(1), sample.data.size(2));
  detail::crop_annotations(sample, where, visible);
  sample.data = sample.data.narrow(1, where.top, where.height).narrow(2, where.left, where.width);
  detail::resize_annotations(sample, height, width);
  sample.data = cropped;
  return sample;
}

}  // namespace frugal
