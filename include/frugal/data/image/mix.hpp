// SPDX-License-Identifier: Apache-2.0
// Shapes: B images, C channels, H rows, W columns, K classes.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <ATen/ATen.h>

#include <frugal/data/batch.hpp>
#include <frugal/data/image/check_images.hpp>
#include <frugal/data/image/patches.hpp>
#include <frugal/data/image/rows_of.hpp>
#include <frugal/data/image/transform_text.hpp>
#include <frugal/data/sample_set.hpp>
#include <frugal/data/sampling/draw.hpp>
#include <frugal/data/shape_text.hpp>
#include <frugal/error.hpp>
#include <frugal/inline.hpp>

namespace frugal {

/// Class labels [B] as probabilities [B, K], float32: 1 for the class, 0 for the others. Soft
/// targets [B, K] stay as they are. CrossEntropy takes them as class probabilities.
///
/// Errors  LabelError for a label below 0 or above K - 1; -100 is one, because a mixed image has no
///         label that could be left out. ShapeError for other shapes.
FRUGAL_INLINE at::Tensor soft_targets(at::Tensor const& labels, std::int64_t classes) {
  if (labels.is_floating_point() && labels.dim() == 2 && labels.size(1) == classes) return labels;
  if (labels.dim() != 1 || labels.scalar_type() != at::kLong) {
    throw ShapeError({.what = "the targets are no class labels",
                      .where = "soft_targets",
                      .why = "they are " + detail::shape_text(labels) + ", for " +
                             std::to_string(classes) + " classes",
                      .fix = "Give labels [B] of int64, or probabilities [B, classes]."});
  }
  for (auto const label : {labels.min().item<std::int64_t>(), labels.max().item<std::int64_t>()}) {
    if (label >= 0 && label < classes) continue;
    throw LabelError({.what = "label " + std::to_string(label) + " has no class",
                      .where = "soft_targets",
                      .why = "there are " + std::to_string(classes) + " classes",
                      .fix = "Set `classes` to the number of classes, and label from 0."});
  }
  return at::zeros({labels.size(0), classes}, labels.options().dtype(at::kFloat))
      .scatter_(1, labels.unsqueeze(1), 1);
}

/// weights[b] of row b and 1 - weights[b] of row partners[b], of floats [B, ...]: images, or soft
/// targets.
FRUGAL_INLINE at::Tensor mix_rows(at::Tensor const& rows, std::span<std::int64_t const> partners,
                                  std::span<double const> weights) {
  std::vector<std::int64_t> shape(static_cast<std::size_t>(rows.dim()), 1);
  shape[0] = -1;
  auto const per_row = [&](std::vector<double> const& numbers) {
    return detail::on_device_of(rows, numbers).to(rows.scalar_type()).view(shape);
  };
  std::vector<double> const mine(weights.begin(), weights.end());
  std::vector<double> others;
  for (double const weight : weights) others.push_back(1 - weight);
  std::vector<std::int64_t> const which(partners.begin(), partners.end());
  return rows.index_select(0, detail::on_device_of(rows, which))
      .mul_(per_row(others))
      .add_(rows.mul(per_row(mine)));
}

namespace detail {

/// The partner of each row: the row that a shift around the batch gives, drawn from the key of the
/// first row. Partners are rows of the batch, so they, and they alone, depend on what is in it.
FRUGAL_INLINE std::vector<std::int64_t> partners_of(std::span<SampleKey const> keys,
                                                    std::uint64_t stream) {
  std::size_t const count = keys.size();
  std::vector<std::int64_t> partners(count);
  std::size_t const shift = count < 2 ? 0 : 1 + Draw(keys[0], ~stream).below(count - 1);
  for (std::size_t b = 0; b < count; ++b) {
    partners[b] = static_cast<std::int64_t>((b + shift) % count);
  }
  return partners;
}

FRUGAL_INLINE void check_mix(Batch const& batch, std::span<SampleKey const> keys, double alpha,
                             std::int64_t classes, char const* caller) {
  check_images(batch.data, keys, caller);
  check_setting(alpha > 0, "an alpha that is not above 0", caller,
                "Set alpha to 0.2 or 1, for example.");
  check_setting(classes > 0, "no number of classes", caller, "Set `classes`: the targets need it.");
}

}  // namespace detail

/// Random transform of a batch: the weighted mean of each image and another one of the batch, and
/// of their targets, which become probabilities [B, classes] for CrossEntropy. The weight is drawn
/// from the image's key, from Beta(alpha, alpha). The partner is the image a shift further in the
/// batch; the shift is drawn from the key of the batch's first image.
///
/// Errors  DtypeError for bytes: put ToFloat or Normalise before it. Those of soft_targets.
/// Source  Zhang, Cisse, Dauphin, Lopez-Paz, "mixup: beyond empirical risk minimization" (ICLR
///         2018). torchvision.transforms.v2.MixUp draws one weight for a batch, and shifts by one.
struct MixUp {
  static constexpr bool mixes_samples = true;

  std::int64_t classes = 0;  ///< of the task; must be set
  double alpha = 0.2;      ///< above 0; 1 is any weight equally likely, near 0 few images are mixed
  double probability = 1;  ///< that an image is mixed at all
  std::uint64_t stream = draw_stream("MixUp");

  /// The weight of an image in its mixture.
  FRUGAL_INLINE double weight(SampleKey const& key) const {
    Draw draw(key, stream);
    return draw.chance(probability) ? draw.beta(alpha, alpha) : 1;
  }

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
           .fix = "Put ToFloat or Normalise before it."});
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
  FRUGAL_INLINE Box box(SampleKey const& key, std::int64_t height, std::int64_t width) const {
    Draw draw(key, stream);
    if (!draw.chance(probability)) return {};
    double const half = 0.5 * std::sqrt(1 - draw.beta(alpha, alpha));
    auto const side = [&](std::int64_t length) {
      auto const reach = static_cast<std::int64_t>(half * static_cast<double>(length));
      auto const middle = static_cast<std::int64_t>(draw.below(static_cast<std::uint64_t>(length)));
      std::int64_t const begin = std::max<std::int64_t>(middle - reach, 0);
      return std::pair{begin, std::min(middle + reach, length) - begin};
    };
    auto const [top, rows] = side(height);
    auto const [left, columns] = side(width);
    return {.top = top, .left = left, .height = rows, .width = columns};
  }

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

}  // namespace frugal
