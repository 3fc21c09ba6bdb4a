// SPDX-License-Identifier: Apache-2.0
// Shapes: B images, C channels, H rows, W columns, M objects of the image that has most, K keypoints of an object.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <ATen/ATen.h>

#include <frugal/data/fields_batch.hpp>
#include <frugal/data/image/annotated.hpp>

namespace frugal {

/// A part of annotations.
enum class Annotation { mask, boxes, keypoints };

/// Annotated images of one size. The part that CollateAnnotated was told is the target; the others
/// are fields. `mask()`, `boxes()` and `keypoints()` find them wherever they are.
struct AnnotatedBatch {
  at::Tensor data{};      ///< [B, C, H, W]
  at::Tensor target{};    ///< one of the parts
  NamedTensors fields{};  ///< the others, and "id" [B] int64
  Annotation target_is = Annotation::boxes;

  /// [B, H, W] int64, -100 where a pixel has no class. DataError if it was not read; so are the others.
  at::Tensor const& mask() const { return part(Annotation::mask); }
  /// [B, M, 6] float32: left, top, right, bottom, label, crowd; label -100 in rows of padding. What
  /// MeanAveragePrecision takes.
  at::Tensor const& boxes() const { return part(Annotation::boxes); }
  /// [B, M, K, 3] float32: x, y, visibility; 0 in rows of padding.
  at::Tensor const& keypoints() const { return part(Annotation::keypoints); }
  at::Tensor const& part(Annotation which) const;
  at::Tensor const& field(std::string const& name) const { return detail::field_in(fields, name); }

  /// Augment refuses what would move the images alone.
  static constexpr bool annotated = true;

  void each_tensor(auto&& f) { f(data, target, fields); }
};

/// A collate function: annotated images of one size as a batch, whose target is the given part.
///
/// Errors  those of Stack for images of several sizes: put a Resize or a crop before it; DataError for
///         a sample that lacks the target, or a part that another one has; those of Augment.
struct CollateAnnotated {
  Annotation target = Annotation::boxes;

  std::string identity() const;

  AnnotatedBatch operator()(std::vector<AnnotatedImage> const& samples,
                            std::span<std::size_t const> indices = {}) const;
};

}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/data/image/annotated_batch.ipp>
#endif
