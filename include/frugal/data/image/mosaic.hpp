// SPDX-License-Identifier: Apache-2.0
// Shapes: B images, C channels, H rows, W columns, K classes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <ATen/ATen.h>

#include <frugal/core/source/batch.hpp>
#include <frugal/core/source/sample_set.hpp>
#include <frugal/data/image/check_images.hpp>
#include <frugal/data/image/mix.hpp>
#include <frugal/data/image/patches.hpp>
#include <frugal/data/image/rows_of.hpp>
#include <frugal/data/image/transform_text.hpp>
#include <frugal/data/sampling/draw.hpp>

namespace frugal {

/// Random transform of a batch: four images around a point, each touching it with a corner, cut off
/// at the size of one image. The first is the image itself, at the top left; the others are images
/// of the batch. Targets of a Batch become probabilities [B, classes], mixed by area. Boxes of a
/// detection task move with `patches`.
///
/// The point is drawn from the image's key. The others are the images three shifts further in the
/// batch; the shifts are drawn from the key of the batch's first image.
///
/// Source  Bochkovskiy, Wang, Liao, "YOLOv4" (arXiv 2004.10934, 2020), section 3.3. The middle of
///         YOLO's mosaic of twice the size.
struct Mosaic {
  static constexpr bool mixes_samples = true;

  std::int64_t classes = 0;  ///< of the task; needed for targets, not for images alone
  double margin = 0.25;      ///< least distance of the point from a side, as a part of the side
  std::uint64_t stream = draw_stream("Mosaic");

  /// The four patches of each row: row b is made of patches 4 * b to 4 * b + 3.
  std::vector<Patch> patches(std::span<SampleKey const> keys, std::int64_t height,
                             std::int64_t width) const;

  std::string identity() const {
    return detail::image_transform_text("Mosaic", 1, classes, margin, stream);
  }

  at::Tensor operator()(at::Tensor const& images, std::span<SampleKey const> keys) const {
    detail::check_images(images, keys, "Mosaic");
    at::Tensor out = detail::empty_images(images, images.size(2), images.size(3));
    detail::paste(images, out, patches(keys, images.size(2), images.size(3)));
    return out;
  }

  Batch operator()(Batch batch, std::span<SampleKey const> keys) const {
    detail::check_images(batch.data, keys, "Mosaic");
    detail::check_setting(classes > 0, "no number of classes", "Mosaic",
                          "Set `classes`: the targets need it.");
    std::int64_t const height = batch.data.size(2), width = batch.data.size(3);
    at::Tensor const soft = soft_targets(batch.target, classes);
    // Which part of row b each image is.
    std::int64_t const count = batch.data.size(0);
    std::vector<double> parts(static_cast<std::size_t>(count * count));
    for (Patch const& each : patches(keys, height, width)) {
      parts[static_cast<std::size_t>(each.to * count + each.from)] +=
          static_cast<double>(each.box.height * each.box.width) /
          static_cast<double>(height * width);
    }
    at::Tensor const weights =
        detail::on_device_of(soft, parts).to(soft.scalar_type()).view({count, count});
    return {(*this)(batch.data, keys), weights.matmul(soft)};
  }
};

}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/data/image/mosaic.ipp>
#endif
