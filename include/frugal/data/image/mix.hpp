// SPDX-License-Identifier: Apache-2.0
// Shapes: B images, C channels, H rows, W columns, K classes.
#pragma once

#include <frugal/core/source/batch.hpp>
#include <frugal/core/source/sample_set.hpp>
#include <frugal/data/image/image_batch.hpp>
#include <frugal/data/sampling/permutation.hpp>
#include <frugal/error.hpp>

#include <ATen/ATen.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace frugal {

/// Class labels [B] as probabilities [B, K], float32: 1 for the class, 0 for the others. Soft
/// targets [B, K] stay as they are. CrossEntropy takes them as class probabilities.
///
/// Errors  LabelError for a label below 0 or above K - 1; -100 is one, because a mixed image has no
///         label that could be left out. ShapeError for other shapes.
at::Tensor soft_targets(at::Tensor const& labels, std::int64_t classes);

/// weights[b] of row b and 1 - weights[b] of row partners[b], of floats [B, ...]: images, or soft
/// targets.
at::Tensor mix_rows(at::Tensor const& rows, std::span<std::int64_t const> partners,
                    std::span<double const> weights);

namespace detail {

/// The partner of each row: the row that a shift around the batch gives, drawn from the key of the
/// first row. Partners are rows of the batch, so they, and they alone, depend on what is in it.
std::vector<std::int64_t> partners_of(std::span<SampleKey const> keys, std::uint64_t stream);

void check_mix(Batch const& batch, std::span<SampleKey const> keys, double alpha,
               std::int64_t classes, char const* caller);

}  // namespace detail

/// Random transform of a batch: the weighted mean of each image and another one of the batch, and
/// of their targets, which become probabilities [B, classes] for CrossEntropy. The weight is drawn
/// from the image's key, from Beta(alpha, alpha). The partner is the image a shift further in the
/// batch; the shift is drawn from the key of the batch's first image.
///
/// Errors  DtypeError for bytes: put ToFloat or Normalize before it. Those of soft_targets.
/// Source  Zhang, Cisse, Dauphin, Lopez-Paz, "mixup: beyond empirical risk minimization" (ICLR
///         2018). torchvision.transforms.v2.MixUp draws one weight for a batch, and shifts by one.
struct MixUp {
  static constexpr bool mixes_samples = true;

  std::int64_t classes = 0;  ///< of the task; must be set
  double alpha = 0.2;      ///< above 0; 1 is any weight equally likely, near 0 few images are mixed
  double probability = 1;  ///< that an image is mixed at all
  std::uint64_t stream = draw_stream("MixUp");

  /// The weight of an image in its mixture.
  double weight(SampleKey const& key) const;

  std::string identity() const {
    return detail::image_transform_text("MixUp", 1, classes, alpha, probability, stream);
  }

  Batch operator()(Batch batch, std::span<SampleKey const> keys) const {
    detail::check_mix(batch, keys, alpha, classes, "MixUp");
    if (!batch.data.is_floating_point()) {
      throw DtypeError(
          {.what = "bytes cannot be mixed without rounding",
           .where = "MixUp",
           .why = std::string("the images have dtype ") + c10::toString(batch.data.scalar_type()),
           .fix = "Put ToFloat or Normalize before it."});
    }
    std::vector<double> weights;
    weights.reserve(keys.size());
    for (SampleKey const& key : keys) weights.push_back(weight(key));
    auto const partners = detail::partners_of(keys, stream);
    batch.data = mix_rows(batch.data, partners, weights);
    batch.target = mix_rows(soft_targets(batch.target, classes), partners, weights);
    return batch;
  }
};

/// Random transform of a batch: a rectangle of each image is that of another one of the batch, and
/// the targets are mixed by area, as probabilities [B, classes] for CrossEntropy. The rectangle is
/// drawn from the image's key, its part of the area from Beta(alpha, alpha); partners as in MixUp.
///
/// Source  Yun et al., "CutMix: regularization strategy to train strong classifiers with
///         localizable features" (ICCV 2019). torchvision.transforms.v2.CutMix draws one rectangle
///         for a batch, and shifts by one.
struct CutMix {
  static constexpr bool mixes_samples = true;

  std::int64_t classes = 0;  ///< of the task; must be set
  double alpha = 1;          ///< above 0; 1 is any area equally likely
  double probability = 1;    ///< that an image is mixed at all
  std::uint64_t stream = draw_stream("CutMix");

  /// The rectangle of an image of this size that its partner fills; part of it may lie outside of
  /// the image, and is cut off.
  Box box(SampleKey const& key, std::int64_t height, std::int64_t width) const;

  std::string identity() const {
    return detail::image_transform_text("CutMix", 1, classes, alpha, probability, stream);
  }

  Batch operator()(Batch batch, std::span<SampleKey const> keys) const {
    detail::check_mix(batch, keys, alpha, classes, "CutMix");
    std::int64_t const height = batch.data.size(2), width = batch.data.size(3);
    auto const partners = detail::partners_of(keys, stream);
    std::vector<Patch> patches;
    std::vector<double> weights;
    for (std::size_t b = 0; b < keys.size(); ++b) {
      Box const cut = box(keys[b], height, width);
      weights.push_back(1 - static_cast<double>(cut.height * cut.width) /
                                static_cast<double>(height * width));
      patches.push_back({.from = partners[b],
                         .box = cut,
                         .to = static_cast<std::int64_t>(b),
                         .top = cut.top,
                         .left = cut.left});
    }
    at::Tensor out = batch.data.clone();
    detail::paste(batch.data, out, patches);
    batch.data = std::move(out);
    batch.target = mix_rows(soft_targets(batch.target, classes), partners, weights);
    return batch;
  }
};

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
#include <frugal/data/image/mix.ipp>
#endif
