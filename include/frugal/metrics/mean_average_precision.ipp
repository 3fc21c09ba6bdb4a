// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/metrics/mean_average_precision.hpp>

#include <frugal/error.hpp>
#include <frugal/inline.hpp>
#include <frugal/metrics/average_precision.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <limits>
#include <utility>

namespace frugal::detail {

FRUGAL_INLINE void refuse_detections(std::string what, std::string why, std::string fix) {
  throw MetricError({.what = std::move(what),
                     .where = "metric map",
                     .why = std::move(why),
                     .fix = std::move(fix)});
}

/// The boxes of an image as rows [N, 6] of single precision at least. Throws MetricError.
FRUGAL_INLINE at::Tensor box_rows(Detections const& image, bool predicted) {
  if (!image.boxes.defined() || image.boxes.numel() == 0) return {};
  auto const is_list = [&](at::Tensor const& part) {
    return part.defined() && part.dim() == 1 && part.size(0) == image.boxes.size(0);
  };
  bool const fits = image.boxes.dim() == 2 && image.boxes.size(1) == 4 &&
                    image.boxes.is_floating_point() && is_list(image.labels) &&
                    !image.labels.is_floating_point() && predicted == image.scores.defined() &&
                    (!predicted || is_list(image.scores)) &&
                    (!image.crowd.defined() || (!predicted && is_list(image.crowd)));
  if (!fits) {
    refuse_detections(
        predicted ? "these are no predictions" : "these are no targets",
        "boxes are " + shape_text(image.boxes) + ", scores " + shape_text(image.scores) +
            ", labels " + shape_text(image.labels) + ", crowd " + shape_text(image.crowd),
        "Boxes are [N, 4] of a floating-point type, labels [N] of an integer type; predictions "
        "have scores [N], and targets have none.");
  }
  at::Tensor const boxes = at_least_float(image.boxes.detach());
  auto const column = [&](at::Tensor const& part) {
    // In double precision, which holds any label and score: who packs rows for a module narrows them.
    return part.detach().to(boxes.device(), at::kDouble).unsqueeze(1);
  };
  at::Tensor const labels = column(image.labels);
  at::Tensor const wide = boxes.to(at::kDouble);
  if (predicted) return at::cat({wide, column(image.scores), labels}, 1);
  return at::cat(
      {wide, labels, image.crowd.defined() ? column(image.crowd) : at::zeros_like(labels)}, 1);
}

FRUGAL_INLINE at::Tensor packed_boxes(std::vector<Detections> const& images, bool predicted) {
  std::vector<at::Tensor> rows;
  std::int64_t longest = 0;
  at::TensorOptions options = at::TensorOptions(at::kDouble);
  bool found = false;
  for (Detections const& image : images) {
    rows.push_back(box_rows(image, predicted));
    if (!rows.back().defined()) continue;
    longest = std::max(longest, rows.back().size(0));
    if (!std::exchange(found, true)) options = rows.back().options();
  }
  at::Tensor const all = at::zeros({static_cast<std::int64_t>(images.size()), longest, 6}, options);
  all.select(2, predicted ? 5 : 4).fill_(ignored_label);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (!rows[i].defined()) continue;
    all.select(0, static_cast<std::int64_t>(i)).narrow(0, 0, rows[i].size(0)).copy_(rows[i]);
  }
  return all;
}

/// A label of a row; -1 of padding. Throws MetricError for anything else than a whole number from 0 on.
FRUGAL_INLINE std::int64_t box_label(double label) {
  if (label == static_cast<double>(ignored_label)) return -1;
  if (label >= 0 && label < 1e15 && std::floor(label) == label) {
    return static_cast<std::int64_t>(label);
  }
  refuse_detections("a box has a label that names no class", "it is " + std::to_string(label),
                    "Labels are whole numbers from 0 on; " + std::to_string(ignored_label) +
                        " marks rows of padding.");
  return -1;
}

}  // namespace frugal::detail

namespace frugal {

FRUGAL_INLINE at::Tensor pack_predictions(std::vector<Detections> const& images) {
  return detail::packed_boxes(images, true);
}
FRUGAL_INLINE at::Tensor pack_targets(std::vector<Detections> const& images) {
  return detail::packed_boxes(images, false);
}

FRUGAL_INLINE void MeanAveragePrecision::add(Detections const& predicted,
                                             Detections const& target) {
  at::Tensor const boxes = detail::box_rows(predicted, true);
  at::Tensor const targets = detail::box_rows(target, false);
  counts_.push_back({boxes.defined() ? boxes.size(0) : 0, targets.defined() ? targets.size(0) : 0});
  if (boxes.defined()) predicted_.push_back(boxes);
  if (targets.defined()) target_.push_back(targets);
}

FRUGAL_INLINE void MeanAveragePrecision::add_packed(at::Tensor const& predicted_BK6,
                                                    at::Tensor const& target_BM6) {
  auto const is_exact = [](at::Tensor const& rows) {
    return rows.scalar_type() == at::kFloat || rows.scalar_type() == at::kDouble;
  };
  bool const fits = predicted_BK6.dim() == 3 && predicted_BK6.size(2) == 6 &&
                    target_BM6.dim() == 3 && (target_BM6.size(2) == 5 || target_BM6.size(2) == 6) &&
                    predicted_BK6.size(0) == target_BM6.size(0) && is_exact(predicted_BK6) &&
                    is_exact(target_BM6);
  if (!fits) {
    detail::refuse_shapes(name, predicted_BK6, target_BM6,
                          "Predictions are [B, K, 6]: left, top, right, bottom, score, label; "
                          "targets [B, M, 5] or [B, M, 6]: left, top, right, bottom, label, crowd; "
                          "both Float or Double. pack_predictions and pack_targets make them.");
  }
  // Copies: the rows stay as they are, whatever is done to the module's output.
  auto const copied = [](at::Tensor const& rows) {
    return rows.detach().to(at::kDouble, /*non_blocking=*/false, /*copy=*/true);
  };
  at::Tensor target = copied(target_BM6);
  if (target.size(2) == 5) target = at::constant_pad_nd(target, {0, 1}, 0);
  predicted_.push_back(copied(predicted_BK6).reshape({-1, 6}));
  target_.push_back(target.reshape({-1, 6}));
  counts_.insert(counts_.end(), static_cast<std::size_t>(predicted_BK6.size(0)),
                 {predicted_BK6.size(1), target_BM6.size(1)});
}

FRUGAL_INLINE at::Tensor MeanAveragePrecision::joined(std::vector<at::Tensor> parts) {
  if (parts.empty()) return at::zeros({0, 6}, at::kDouble);
  for (at::Tensor& part : parts) part = part.to(parts.back().device());
  return at::cat(parts);
}

FRUGAL_INLINE at::Tensor MeanAveragePrecision::counts_tensor() const {
  at::Tensor counts = at::empty({static_cast<std::int64_t>(counts_.size()), 2}, at::kLong);
  auto* number = counts.mutable_data_ptr<std::int64_t>();
  for (Counts const& each : counts_) {
    *number++ = each.predicted;
    *number++ = each.target;
  }
  return counts;
}

FRUGAL_INLINE void MeanAveragePrecision::set_counts(at::Tensor const& counts) {
  at::Tensor const host = counts.cpu().contiguous();
  auto const* number = host.const_data_ptr<std::int64_t>();
  counts_.clear();
  for (std::int64_t i = 0; i < host.size(0); ++i) {
    counts_.push_back({number[2 * i], number[2 * i + 1]});
  }
}

FRUGAL_INLINE std::string MeanAveragePrecision::warning() const {
  at::Tensor const rows = joined(predicted_).cpu();
  at::Tensor const own = rows.select(1, 5).ne(ignored_label);
  std::int64_t const wrong = rows.isnan().any(1).logical_and(own).sum().item<std::int64_t>();
  if (wrong != 0)
    return std::to_string(wrong) + " predicted boxes have a coordinate or score that is NaN";
  return "no target has a box that is no crowd; measure on data that has objects";
}

FRUGAL_INLINE Metrics MeanAveragePrecision::result() const {
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  at::Tensor const boxes = joined(predicted_).cpu().contiguous();
  at::Tensor const targets = joined(target_).cpu().contiguous();
  auto const* box = boxes.const_data_ptr<double>();
  auto const* target = targets.const_data_ptr<double>();
  bool has_nan = false;
  detail::AveragePrecision found;
  for (std::size_t image = 0; image < counts_.size(); ++image) {
    for (std::int64_t i = 0; i < counts_[image].predicted; ++i, box += 6) {
      std::int64_t const label = detail::box_label(box[5]);
      if (label < 0) continue;
      has_nan = has_nan || std::any_of(box, box + 5, [](double each) { return std::isnan(each); });
      found.predict(image, label, {box[0], box[1], box[2], box[3]}, box[4]);
    }
    for (std::int64_t i = 0; i < counts_[image].target; ++i, target += 6) {
      std::int64_t const label = detail::box_label(target[4]);
      if (label < 0) continue;
      bool const fits =
          std::all_of(target, target + 4, [](double each) { return std::isfinite(each); }) &&
          target[2] >= target[0] && target[3] >= target[1];
      if (!fits) {
        detail::refuse_detections(
            "a target is no box",
            "it is " + std::to_string(target[0]) + ", " + std::to_string(target[1]) + ", " +
                std::to_string(target[2]) + ", " + std::to_string(target[3]),
            "A box is left, top, right, bottom, finite and not inverted: not a centre with a "
            "size, and not a corner with a size.");
      }
      found.expect(image, label, {target[0], target[1], target[2], target[3]}, target[5] != 0);
    }
  }
  Metrics metrics;
  std::vector<detail::ClassPrecision> const classes =
      has_nan ? std::vector<detail::ClassPrecision>() : found.classes();
  detail::ClassPrecision sum{};
  at::Tensor const table = at::empty({static_cast<std::int64_t>(classes.size()), 2}, at::kDouble);
  auto* cell = table.mutable_data_ptr<double>();
  for (detail::ClassPrecision const& each : classes) {
    sum.all += each.all;
    sum.at_50 += each.at_50;
    sum.at_75 += each.at_75;
    sum.recall += each.recall;
    *cell++ = static_cast<double>(each.label);
    *cell++ = each.all;
  }
  double const count = classes.empty() ? nan : static_cast<double>(classes.size());
  metrics.set("map", sum.all / count);
  metrics.set("map_50", sum.at_50 / count);
  metrics.set("map_75", sum.at_75 / count);
  metrics.set("mar_100", sum.recall / count);
  if (!classes.empty()) metrics.set_table(name, table);
  return metrics;
}

}  // namespace frugal
