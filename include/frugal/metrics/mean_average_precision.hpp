// SPDX-License-Identifier: Apache-2.0
// Shapes: B images, K boxes predicted for one, M boxes of its target, N boxes of all images.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <frugal/core/run/metrics.hpp>
#include <frugal/core/run/objective.hpp>
#include <frugal/metrics/decisions.hpp>

namespace frugal {

/// The boxes of one image: those that a detector predicts, with scores, or those of its target, without. Tensors may
/// lie anywhere. An image without a box has boxes [0, 4], or an undefined tensor.
struct Detections {
  at::Tensor boxes{};   ///< [N, 4] floating-point: left, top, right, bottom
  at::Tensor scores{};  ///< [N]; undefined in a target
  at::Tensor labels{};  ///< [N] of an integer type, 0 or more
  /// [N] bool, in a target: COCO's "iscrowd", a region with objects that were not marked one by one. Undefined: none.
  at::Tensor crowd{};
};

/// Predictions of B images as one tensor [B, K, 6] for Loss::output: left, top, right, bottom, score, label. Images
/// with fewer boxes than K are filled with rows of label -100. In double precision, where the first boxes lie.
at::Tensor pack_predictions(std::vector<Detections> const& images);
/// Targets of B images as one tensor [B, M, 6], likewise: left, top, right, bottom, label, crowd.
at::Tensor pack_targets(std::vector<Detections> const& images);

/// Mean average precision of boxes as COCO has it: "map", the mean over IoU thresholds 0.50, 0.55, ... 0.95 and over
/// the classes; "map_50" and "map_75", of one threshold; "mar_100", the mean recall with 100 boxes per image and
/// class. Values are those of pycocotools (bbox, areas of any size, at most 100 boxes per image and class).
///
/// By itself, an image at a time:
///
///     MeanAveragePrecision map;
///     map.add(predicted, target);     // Detections of one image
///     map.result()["map_50"];
///
/// In Validate, with an objective that returns packed predictions in evaluation mode: `Loss::output` is [B, K, 6]
/// (pack_predictions), the batch's target [B, M, 5] or [B, M, 6] (pack_targets; without the column of crowds there
/// are none). Rows of label -100 are padding. K and M may differ from batch to batch.
///
/// The mean is over the classes that have a target which is no crowd; predictions of other classes do not count, as
/// in COCO. NaN if there is no such target, and if a box or score that is predicted is NaN; warning() says which.
/// `metrics.table("map")` is [classes, 2] double in host memory: label and average precision. A predicted box whose
/// right is left of its left overlaps nothing, and is wrong. Equal scores rank in the order in which they were added.
///
/// MetricError: other shapes; packed rows of 16 bits, which would round pixels and labels; with the result, labels
/// that are no whole number from 0 on, and targets that are not finite or have a negative width or height.
///
/// State: 6 doubles per box. result() copies them to the host; nothing waits for a device before.
class MeanAveragePrecision {
 public:
  static constexpr std::string_view name = "map";
  using of_boxes = void;  // for IgnoreIndex, which refuses it

  void add(Detections const& predicted, Detections const& target);

  template <class B>
  void add(Loss const& loss, B const& batch) {
    add_packed(detail::output_of(loss, name), detail::target_of(batch));
  }
  /// Where processes divide a validation: `rows(x)` is x of all of them.
  template <class Rows>
  void gather(Rows&& rows) {
    at::Tensor const boxes = joined(predicted_), targets = joined(target_);
    at::Tensor const counts = counts_tensor();
    predicted_ = {rows(boxes)};
    target_ = {rows(targets)};
    set_counts(rows(counts));
  }
  Metrics result() const;
  /// Why the result is NaN.
  std::string warning() const;
  template <class Archive>
  void persist(Archive& archive) {
    at::Tensor boxes, targets, counts;
    if (!Archive::loading) {
      boxes = joined(predicted_);
      targets = joined(target_);
      counts = counts_tensor();
    }
    archive("predicted", boxes);
    archive("target", targets);
    archive("counts", counts);
    if (!Archive::loading) return;
    predicted_ = {boxes};
    target_ = {targets};
    set_counts(counts);
  }

 private:
  struct Counts {
    std::int64_t predicted = 0, target = 0;
  };

  void add_packed(at::Tensor const& predicted_BK6, at::Tensor const& target_BM6);
  /// [N, 6] double, on the device of the last part: a run may have moved to it.
  static at::Tensor joined(std::vector<at::Tensor> parts);
  at::Tensor counts_tensor() const;
  void set_counts(at::Tensor const& counts);

  // Rows as they are packed; those of padding are left out with the result.
  std::vector<at::Tensor> predicted_;  ///< [N, 6]
  std::vector<at::Tensor> target_;     ///< [N, 6]
  std::vector<Counts> counts_;         ///< rows of each image
};

}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/metrics/mean_average_precision.ipp>
#endif
