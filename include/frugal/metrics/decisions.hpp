// SPDX-License-Identifier: Apache-2.0
// Shapes: B samples, C classes, N decisions (samples, tokens or pixels), ... what one sample has.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include <frugal/core/run/objective.hpp>
#include <frugal/data/batch.hpp>
#include <frugal/data/fields.hpp>
#include <frugal/data/labels.hpp>
#include <frugal/error.hpp>
#include <frugal/inline.hpp>
#include <frugal/metrics/tally.hpp>

namespace frugal {

namespace detail {

/// What a batch's labels, or its target values, are.
template <class B>
at::Tensor target_of(B const& batch) {
  static_assert(
      HasTarget<B>,
      "frugal: a metric needs labels or target values, and this batch type has none. Give "
      "it a member `target`, or write a metric that takes what it has.");
  if constexpr (HasTarget<B>) {
    return batch_target(batch);
  } else {
    return {};
  }
}

/// What the module made of a batch, without its graph. MetricError where the objective keeps it.
FRUGAL_INLINE at::Tensor output_of(Loss const& loss, std::string_view metric) {
  if (loss.output.defined()) {
    return loss.output.requires_grad() ? loss.output.detach() : loss.output;
  }
  throw MetricError({.what = std::string(metric) + " needs the module's output",
                     .where = "metric " + std::string(metric),
                     .why = "the objective returned a bare loss",
                     .fix = "Return frugal::Loss{.value = ..., .output = logits} from it."});
}

[[noreturn]] FRUGAL_INLINE void refuse_shapes(std::string_view metric, at::Tensor const& output,
                                              at::Tensor const& target, std::string fix) {
  throw MetricError({.what = "the module's output does not fit the target",
                     .where = "metric " + std::string(metric),
                     .why = "output is " + shape_text(output) + ", target is " + shape_text(target),
                     .fix = std::move(fix)});
}

/// Logits [B, C, ...] with labels [B, ...], where C is 2 or more?
FRUGAL_INLINE bool are_logits(at::Tensor const& output, at::Tensor const& labels) {
  if (output.dim() != labels.dim() + 1 || output.dim() < 2 || output.size(1) < 2) return false;
  return output.size(0) == labels.size(0) && output.sizes().slice(2) == labels.sizes().slice(1);
}
/// One logit a label: of one shape, or [B, 1] with [B].
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

/// Throws MetricError for labels that are not from 0 to C - 1, and not -100.
[[noreturn]] FRUGAL_INLINE void refuse_labels(std::int64_t outside, std::int64_t classes,
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

/// Stands for a value that is no label: outside of all classes, and not ignored.
inline constexpr std::int64_t no_label = ignored_label - 1;

/// [N]. Without an operator if it is that already, as the labels of a batch of samples are.
FRUGAL_INLINE at::Tensor flattened(at::Tensor const& tensor) {
  return tensor.dim() == 1 ? tensor : tensor.reshape({-1});
}

/// Labels as int64. Of a floating-point target 0, 1 and -100 are labels: a probability would be
/// truncated to a class. In host memory any other value is a MetricError; on a device it becomes
/// `no_label`, without a wait, and who counts the labels refuses it with the result.
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

/// Logits a row, and the label of each.
struct Scores {
  at::Tensor logits;  ///< [N, C]
  at::Tensor labels;  ///< [N] int64
};

/// Throws MetricError, with both shapes, where output and target are something else.
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

/// The class that was decided on, and the label, of each sample, token or pixel.
struct Decisions {
  at::Tensor predicted;  ///< [N] int64
  at::Tensor labels;     ///< [N] int64
  std::int64_t classes;
};

/// `predicted`, but the class after the label where a score is NaN: a wrong one, whatever the
/// label. Of two classes it is the other one. All are [N].
FRUGAL_INLINE at::Tensor wrong_where_nan(at::Tensor predicted, at::Tensor const& score,
                                         at::Tensor const& labels, std::int64_t classes) {
  // Reading in host memory is no wait.
  if (score.is_cpu() && !has_nan_now(score)) return predicted;
  return at::where(score.isnan(), labels.add(1).remainder_(classes), predicted);
}

/// Of logits [B, C, ...] the largest decides, the first of equals; of one logit a label whether it
/// is above 0. A NaN among a label's logits is a wrong decision. Throws MetricError, with both
/// shapes, where output and target are neither; and as whole_labels does.
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

template <class B>
Decisions decisions_of(Loss const& loss, B const& batch, std::string_view metric) {
  return decisions_of(output_of(loss, metric), target_of(batch), metric);
}

/// How many labels [N] int64 count, and how many of these name no class.
///
/// In host memory both are numbers from one pass, which no operator makes; on a device they are summed where
/// they lie. Who counts labels refuses those of no class with the result: a label such as 255 for "no class"
/// would count as a wrong prediction.
class LabelTally {
 public:
  /// Whether one of these may name no class: exact in host memory; on a device, where nobody waits to
  /// know, true.
  FRUGAL_INLINE bool add(at::Tensor const& labels, std::int64_t classes) {
    classes_ = classes;
    if (!labels.is_cpu()) {
      at::Tensor const counts = labels.ne(ignored_label);
      counted_.add(counts.sum());
      outside_.add(labels.clamp(0, classes - 1).ne(labels).logical_and_(counts).sum());
      return true;
    }
    std::int64_t outside = 0;
    std::int64_t const counted =
        count_on_host<std::int64_t>(labels, [&outside, classes](auto each) {
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
  /// How many counted. MetricError if one of them named no class.
  FRUGAL_INLINE double counted(std::string_view metric) const {
    double const outside = outside_.value();
    if (outside != 0) refuse_labels(static_cast<std::int64_t>(outside), classes_, metric);
    return counted_.value();
  }
  template <class Sum>
  void reduce(Sum&& sum) {
    counted_.reduce(sum);
    outside_.reduce(sum);
  }
  /// A checkpoint of before labels of no class were counted has none of these.
  template <class Archive>
  void persist(Archive& archive) {
    counted_.persist(archive, "labels");
    if constexpr (requires { archive.holds("outside"); }) {
      if (!archive.holds("outside")) return;
    }
    outside_.persist(archive, "outside");
    if constexpr (requires { archive.holds("outside_classes"); }) {
      if (!archive.holds("outside_classes")) return;
    }
    archive("outside_classes", classes_);
  }

 private:
  Tally counted_;
  Tally outside_;
  std::int64_t classes_ = 0;
};

}  // namespace detail
}  // namespace frugal
