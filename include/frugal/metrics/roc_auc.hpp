// SPDX-License-Identifier: Apache-2.0
// Shapes: B samples, C classes, N labels, ... whatever one sample has.
#pragma once

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include <frugal/core/compose/diagnostic.hpp>
#include <frugal/core/run/objective.hpp>
#include <frugal/error.hpp>
#include <frugal/metrics/decisions.hpp>
#include <frugal/metrics/precision_recall.hpp>

namespace frugal {

namespace detail {

/// The share of pairs of a positive and a negative whose positive scores higher; ties count half.
/// Counted in whole numbers, from the ranks (Mann, Whitney 1947). `scores` is sorted.
class RankedPairs {
 public:
  struct Scored {
    double score;
    bool positive;
  };

  explicit RankedPairs(std::vector<Scored>& scores);

  /// NaN where a score is, and where there is no pair.
  double area() const;

 private:
  bool has_nan_ = false;
  std::uint64_t positives_ = 0;
  std::uint64_t negatives_ = 0;
  std::uint64_t twice_ = 0;
};

}  // namespace detail

/// Area under the ROC curve, exact and not binned: "roc_auc" of two classes, and with Macro
/// "roc_auc_ovr", the mean over the classes of each against the rest by the log-odds of its softmax
/// probability: the probabilities themselves are 1 from a margin of 37 on, and would tie. Ties
/// count half, as in scikit-learn. It is NaN where a score is NaN, and where a class has none or
/// all of the labels; warning() says which.
///
/// Binary takes one logit a label, [B, ...] with [B, ...] or [B, 1] with [B], or logits [B, 2, ...]
/// with labels [B, ...]; Macro takes logits [B, C, ...]. Labels of -100 are left out. MetricError
/// for other shapes, and for labels that name no class.
///
/// State: all scores, on their device: for each label of Binary 4 bytes (8 of double scores) and 1,
/// of Macro C scores of the output's type and 4 bytes. result() sorts on the host. Ranks cannot be
/// added up, so processes gather all scores.
template <class Average = Binary>
class RocAuc {
  static constexpr bool binary = std::is_same_v<Average, Binary>;
  static_assert(binary || std::is_same_v<Average, Macro>,
                "frugal: RocAuc<...>: unknown average. Options: Binary, Macro. Write RocAuc<> or "
                "RocAuc<Macro>.");

 public:
  static constexpr std::string_view name = binary ? "roc_auc" : "roc_auc_ovr";

  FRUGAL_DIAGNOSTIC(
      of_one_process,
      "frugal: RocAuc ranks the scores of all samples, which cannot be added up over "
      "the processes of this recipe (service::reduce). Remove it from the recipe, and "
      "evaluate it in one process.");

  template <class B>
  void add(Loss const& loss, B const& batch) {
    at::Tensor const output = detail::output_of(loss, name);
    at::Tensor const target = detail::target_of(batch);
    if constexpr (binary) {
      add_scores(score_of(output, target), target);
    } else {
      auto const [logits, labels] = detail::scores_of(output, target, name);
      if (!scores_.empty() && scores_.front().size(1) != logits.size(1)) {
        detail::refuse_shapes(name, output, target,
                              "It was of " + std::to_string(scores_.front().size(1)) +
                                  " classes before: return logits of one number of classes.");
      }
      scores_.push_back(logits);
      labels_.push_back(labels.to(at::kInt));
    }
  }

  /// Where processes divide a validation: `rows(x)` is x of all of them.
  template <class Rows>
  void gather(Rows&& rows) {
    if (scores_.empty()) return;
    scores_ = {rows(joined(scores_))};
    labels_ = {rows(joined(labels_))};
  }
  double result() const {
    if (scores_.empty()) return nan;
    at::Tensor const labels = labels_on_host();
    at::Tensor scores = joined(scores_).cpu().to(at::kDouble);
    std::int64_t const classes = binary ? 2 : scores.size(1);
    if (!binary) scores = log_odds(scores).t().contiguous();
    auto const* const label = static_cast<std::int64_t const*>(labels.const_data_ptr());
    auto const* const score = static_cast<double const*>(scores.const_data_ptr());
    require_labels(label, labels.numel(), classes);
    double sum = 0;
    for (std::int64_t c = binary ? 1 : 0; c < classes; ++c) {
      sum += area(score + (binary ? 0 : c * labels.numel()), label, labels.numel(), c);
    }
    return binary ? sum : sum / static_cast<double>(classes);
  }
  /// Why the result is NaN, if a class has none or all of the labels.
  std::string warning() const {
    if (scores_.empty()) return {};
    at::Tensor const labels = labels_on_host();
    std::int64_t const count = labels.ne(ignored_label).sum().template item<std::int64_t>();
    std::int64_t const classes = binary ? 2 : scores_.front().size(1);
    for (std::int64_t c = binary ? 1 : 0; c < classes; ++c) {
      std::int64_t const own = labels.eq(c).sum().template item<std::int64_t>();
      if (own != 0 && own != count) continue;
      return std::to_string(own) + " of " + std::to_string(count) + " labels are of class " +
             std::to_string(c) +
             ", and there is no ROC curve where a class has none or all of them; measure on data "
             "that has labels of every class, or leave the metric out";
    }
    return {};
  }

  template <class Archive>
  void persist(Archive& archive) {
    at::Tensor scores, labels;
    if (!Archive::loading && !scores_.empty()) {
      scores = joined(scores_);
      labels = joined(labels_);
    }
    archive("scores", scores);
    archive("labels", labels);
    if (!Archive::loading) return;
    scores_.clear();
    labels_.clear();
    if (!scores.defined()) return;
    scores_.push_back(scores);
    labels_.push_back(labels);
  }

 private:
  static constexpr double nan = std::numeric_limits<double>::quiet_NaN();

  at::Tensor labels_on_host() const { return joined(labels_).cpu().to(at::kLong); }

  /// log p / (1 - p) of the softmax of logits [N, C]: z_c - log(the sum of exp over the others). It
  /// is taken of the logits less the largest of their row, so that it depends on differences alone.
  static at::Tensor log_odds(at::Tensor const& logits_NC) {
    auto const [largest_N1, top_N1] = logits_NC.max(1, /*keepdim=*/true);
    at::Tensor const below_NC = logits_NC - largest_N1;
    at::Tensor const powers_NC = below_NC.exp();
    // The largest is among the others, so that nothing cancels: the difference is 1 or more.
    at::Tensor const odds_NC = below_NC - (powers_NC.sum(1, /*keepdim=*/true) - powers_NC).log();
    // Except of the largest itself.
    constexpr double infinity = std::numeric_limits<double>::infinity();
    at::Tensor const others_N1 =
        below_NC.scatter(1, top_N1, at::Scalar(-infinity)).logsumexp(1, /*keepdim=*/true);
    return at::where(logits_NC.isnan().any(1, /*keepdim=*/true), nan,
                     odds_NC.scatter(1, top_N1, -others_N1));
  }

  /// On the device of the last part: a run may have moved to it.
  static at::Tensor joined(std::vector<at::Tensor> parts) {
    for (at::Tensor& part : parts) part = part.to(parts.back().device());
    return at::cat(parts);
  }

  using Scored = detail::RankedPairs::Scored;

  static at::Tensor score_of(at::Tensor const& output, at::Tensor const& target) {
    detail::require_floats(name, output);
    at::Tensor const exact = output.scalar_type() == at::kDouble ? output : output.to(at::kFloat);
    if (detail::are_logits(output, target) && output.size(1) == 2) {
      return exact.select(1, 1) - exact.select(1, 0);
    }
    if (detail::is_one_logit(output, target)) return exact;
    detail::refuse_shapes(name, output, target,
                          "Give one logit a label, or logits [B, 2, ...] with labels [B, ...]; "
                          "RocAuc<Macro> is of more classes.");
  }
  void add_scores(at::Tensor const& scores, at::Tensor const& target) {
    at::Tensor const labels = detail::whole_labels(target, name);
    // In one byte: a label that is left out, or is none.
    at::Tensor const known = at::where(labels.ge(0).logical_and_(labels.le(1)), labels, none);
    scores_.push_back(scores.reshape({-1}).clone());
    labels_.push_back(
        at::where(labels.eq(ignored_label), ignored_label, known).to(at::kChar).reshape({-1}));
  }

  static void require_labels(std::int64_t const* label, std::int64_t count, std::int64_t classes) {
    auto const wrong = std::count_if(label, label + count, [&](std::int64_t each) {
      return each != ignored_label && (each < 0 || each >= classes);
    });
    if (wrong != 0) detail::refuse_labels(wrong, classes, name);
  }
  static double area(double const* score, std::int64_t const* label, std::int64_t count,
                     std::int64_t of_class) {
    std::vector<Scored> scores;
    scores.reserve(static_cast<std::size_t>(count));
    for (std::int64_t i = 0; i < count; ++i) {
      if (label[i] != ignored_label) scores.push_back({score[i], label[i] == of_class});
    }
    detail::RankedPairs const pairs(scores);
    return pairs.area();
  }

  static constexpr std::int64_t none = 2;  ///< stands for a label that is no class

  std::vector<at::Tensor> scores_;  ///< [N], or [N, C] with Macro
  std::vector<at::Tensor> labels_;  ///< [N]
};

}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/metrics/roc_auc.ipp>
#endif
