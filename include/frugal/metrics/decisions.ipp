// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/metrics/decisions.hpp>

#include <frugal/error.hpp>
#include <frugal/inline.hpp>

#include <utility>

namespace frugal::detail {

FRUGAL_INLINE void Tally::add(at::Tensor const& scalar) {
  if (scalar.is_cpu()) {
    host_ += number(scalar);
  } else {
    at::Tensor const part = scalar.to(at::kDouble);
    device_ = device_.defined() ? device_.to(part.device()) + part : part;
  }
}

FRUGAL_INLINE double Tally::number(at::Tensor const& scalar) {
  if (scalar.scalar_type() == at::kLong) {
    return static_cast<double>(*static_cast<std::int64_t const*>(scalar.const_data_ptr()));
  }
  if (scalar.scalar_type() == at::kDouble) {
    return *static_cast<double const*>(scalar.const_data_ptr());
  }
  return scalar.item<double>();
}

FRUGAL_INLINE void Tally::set(double all) {
  host_ = all;
  device_ = at::Tensor();
}

FRUGAL_INLINE void TensorTally::add(at::Tensor const& part) {
  at::Tensor const exact = part.to(at::kDouble);
  // A run may have moved to another device since the last part.
  sum_ = sum_.defined() ? sum_.to(exact.device()) + exact : exact;
}

FRUGAL_INLINE at::Tensor output_of(Loss const& loss, std::string_view metric) {
  if (loss.output.defined()) {
    return loss.output.requires_grad() ? loss.output.detach() : loss.output;
  }
  throw MetricError({.what = std::string(metric) + " needs the module's output",
                     .where = "metric " + std::string(metric),
                     .why = "the objective returned a bare loss",
                     .fix = "Return frugal::Loss{.value = ..., .output = logits} from it."});
}

FRUGAL_INLINE void refuse_shapes(std::string_view metric, at::Tensor const& output,
                                 at::Tensor const& target, std::string fix) {
  throw MetricError({.what = "the module's output does not fit the target",
                     .where = "metric " + std::string(metric),
                     .why = "output is " + shape_text(output) + ", target is " + shape_text(target),
                     .fix = std::move(fix)});
}

FRUGAL_INLINE bool are_logits(at::Tensor const& output, at::Tensor const& labels) {
  if (output.dim() != labels.dim() + 1 || output.dim() < 2 || output.size(1) < 2) return false;
  return output.size(0) == labels.size(0) && output.sizes().slice(2) == labels.sizes().slice(1);
}

FRUGAL_INLINE bool is_one_logit(at::Tensor const& output, at::Tensor const& labels) {
  return output.sizes() == labels.sizes() ||
         (output.dim() == 2 && output.size(1) == 1 && labels.dim() == 1 &&
          output.size(0) == labels.size(0));
}

FRUGAL_INLINE void require_floats(std::string_view metric, at::Tensor const& output) {
  if (output.is_floating_point()) return;
  throw MetricError({.what = "the module's output is not scores",
                     .where = "metric " + std::string(metric),
                     .why = "it is " + shape_text(output),
                     .fix = "Return logits as the objective's output, of a floating-point type."});
}

FRUGAL_INLINE void refuse_labels(std::int64_t outside, std::int64_t classes,
                                 std::string_view metric) {
  std::string fix = "Check the labels, or ignore them with IgnoreIndex<label, Metric>.";
  if (classes == 2) {
    fix +=
        " Probabilities, such as those of MixUp and of label smoothing, are no labels: measure "
        "on data whose target is 0 and 1.";
  }
  throw MetricError({.what = std::to_string(outside) + " labels name no class",
                     .where = "metric " + std::string(metric),
                     .why = (classes > 0 ? "they are not from 0 to " + std::to_string(classes - 1)
                                         : std::string("they are none of the logits' classes")) +
                            ", and not " + std::to_string(ignored_label),
                     .fix = std::move(fix)});
}

FRUGAL_INLINE at::Tensor flattened(at::Tensor const& tensor) {
  return tensor.dim() == 1 ? tensor : tensor.reshape({-1});
}

FRUGAL_INLINE at::Tensor whole_labels(at::Tensor const& target, std::string_view metric) {
  if (target.scalar_type() == at::kLong) return target;
  if (!target.is_floating_point()) return target.to(at::kLong);
  at::Tensor const is_label =
      target.eq(0).logical_or_(target.eq(1)).logical_or_(target.eq(ignored_label));
  if (!target.is_cpu()) return at::where(is_label, target.to(at::kLong), no_label);
  std::int64_t const others = target.numel() - count_true_now(is_label);
  if (others != 0) refuse_labels(others, /*classes=*/2, metric);
  return target.to(at::kLong);
}

FRUGAL_INLINE Scores scores_of(at::Tensor const& output, at::Tensor const& target,
                               std::string_view metric) {
  require_floats(metric, output);
  if (!are_logits(output, target) || target.is_floating_point()) {
    refuse_shapes(metric, output, target,
                  "Logits are [B, C, ...] with 2 classes or more, labels [B, ...] of an integer "
                  "type.");
  }
  std::int64_t const classes = output.size(1);
  return {output.movedim(1, -1).reshape({-1, classes}), target.reshape({-1}).to(at::kLong)};
}

FRUGAL_INLINE at::Tensor wrong_where_nan(at::Tensor predicted, at::Tensor const& score,
                                         at::Tensor const& labels, std::int64_t classes) {
  // Reading in host memory is no wait.
  if (score.is_cpu() && !has_nan_now(score)) return predicted;
  return at::where(score.isnan(), labels.add(1).remainder_(classes), predicted);
}

FRUGAL_INLINE Decisions decisions_of(at::Tensor const& output, at::Tensor const& target,
                                     std::string_view metric) {
  require_floats(metric, output);
  bool const logits = are_logits(output, target) && !target.is_floating_point();
  if (!logits && !is_one_logit(output, target)) {
    refuse_shapes(metric, output, target,
                  "Logits are [B, C, ...] with labels [B, ...] of an integer type; or there is one "
                  "logit a label, for two classes.");
  }
  at::Tensor labels = whole_labels(flattened(target), metric);
  if (logits) {
    // The largest is NaN where any is.
    auto [largest, predicted] = output.max(1);
    predicted = wrong_where_nan(flattened(predicted), flattened(largest), labels, output.size(1));
    return {
        .predicted = std::move(predicted), .labels = std::move(labels), .classes = output.size(1)};
  }
  at::Tensor const score = flattened(output);
  return {.predicted = wrong_where_nan(score.gt(0).to(at::kLong), score, labels, 2),
          .labels = labels,
          .classes = 2};
}

FRUGAL_INLINE bool LabelTally::add(at::Tensor const& labels, std::int64_t classes) {
  classes_ = classes;
  if (!labels.is_cpu()) {
    at::Tensor const counts = labels.ne(ignored_label);
    counted_.add(counts.sum());
    outside_.add(labels.clamp(0, classes - 1).ne(labels).logical_and_(counts).sum());
    return true;
  }
  std::int64_t outside = 0;
  std::int64_t const counted = count_on_host<std::int64_t>(labels, [&outside, classes](auto each) {
    // One comparison: as unsigned numbers, negative ones are the largest.
    if (static_cast<std::uint64_t>(each) < static_cast<std::uint64_t>(classes)) [[likely]] {
      return true;
    }
    bool const counts = each != ignored_label;
    outside += static_cast<std::int64_t>(counts);
    return counts;
  });
  counted_.add(static_cast<double>(counted));
  outside_.add(static_cast<double>(outside));
  return outside != 0;
}

FRUGAL_INLINE double LabelTally::counted(std::string_view metric) const {
  double const outside = outside_.value();
  if (outside != 0) refuse_labels(static_cast<std::int64_t>(outside), classes_, metric);
  return counted_.value();
}

}  // namespace frugal::detail
