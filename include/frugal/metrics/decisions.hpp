// SPDX-License-Identifier: Apache-2.0
// Shapes: B samples, C classes, N decisions (samples, tokens or pixels), ... what one sample has.
#pragma once

#include <frugal/core/run/objective.hpp>
#include <frugal/core/source/batch.hpp>
#include <frugal/core/source/fields.hpp>
#include <frugal/core/source/labels.hpp>

#include <ATen/ATen.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace frugal::detail {

/// A sum of scalars that stay where they are until somebody asks: those of the host are added up
/// as numbers, without an operator, those of a device on the device, without a wait.
///
/// Copies continue independently: nothing is added in place.
class Tally {
 public:
  void add(double here) { host_ += here; }
  void add(at::Tensor const& scalar);

  /// What was added on the host.
  double on_host() const { return host_; }
  /// Waits for the device if something lies there.
  double value() const {
    return device_.defined() ? host_ + device_.template item<double>() : host_;
  }

  template <class Sum>
  void reduce(Sum&& sum) {
    set(sum(value()));
  }

  template <class Archive>
  void persist(Archive& archive, std::string const& name) {
    double all = Archive::loading ? 0 : value();
    archive(name, all);
    if (Archive::loading) set(all);
  }

 private:
  // The two types that metrics make of a batch are read without a dispatch. Through the untyped
  // pointer: see host_scalar in core/run/loss_accumulator.hpp.
  static double number(at::Tensor const& scalar);
  void set(double all);

  double host_ = 0;
  at::Tensor device_;
};

/// A tally of one number per class, or of a table of them: a tensor of doubles that is added up
/// where it lies. All parts have one shape.
class TensorTally {
 public:
  void add(at::Tensor const& part);
  bool defined() const { return sum_.defined(); }
  at::Tensor const& sum() const { return sum_; }
  /// Waits for the device if it lies there.
  at::Tensor on_host() const { return sum_.defined() ? sum_.cpu() : sum_; }

  template <class Sum>
  void reduce(Sum&& sum) {
    if (sum_.defined()) sum_ = sum(sum_);
  }

  template <class Archive>
  void persist(Archive& archive, std::string const& name) {
    archive(name, sum_);
  }

 private:
  at::Tensor sum_;
};

}  // namespace frugal::detail

namespace frugal {

namespace detail {

/// A batch's labels, -100 at padding: labels of a floating-point type are padded with 0.
template <class B>
at::Tensor target_of(B const& batch) {
  static_assert(
      HasTarget<B>,
      "frugal: a metric needs labels or target values, and this batch type has none. Give "
      "it a member `target`, or write a metric that takes what it has.");
  if constexpr (TensorTarget<B>) {
    at::Tensor const& target = batch_target(batch);
    if (!target.defined() || !target.is_floating_point()) return target;
    at::Tensor const mask = mask_of(batch, target);
    return mask.defined() ? target.masked_fill(mask.logical_not(), ignored_label) : target;
  } else if constexpr (HasTarget<B>) {
    return batch_target(batch);
  } else {
    return {};
  }
}

/// What the module made of a batch, without its graph. MetricError where the objective keeps it.
at::Tensor output_of(Loss const& loss, std::string_view metric);

[[noreturn]] void refuse_shapes(std::string_view metric, at::Tensor const& output,
                                at::Tensor const& target, std::string fix);

/// Logits [B, C, ...] with labels [B, ...], where C is 2 or more?
bool are_logits(at::Tensor const& output, at::Tensor const& labels);
/// One logit a label: of one shape, or [B, 1] with [B].
bool is_one_logit(at::Tensor const& output, at::Tensor const& labels);
void require_floats(std::string_view metric, at::Tensor const& output);

/// Throws MetricError for labels that are not from 0 to C - 1, and not -100.
[[noreturn]] void refuse_labels(std::int64_t outside, std::int64_t classes,
                                std::string_view metric);

/// Stands for a value that is no label: outside of all classes, and not ignored.
inline constexpr std::int64_t no_label = ignored_label - 1;

/// [N]. Without an operator if it is that already, as the labels of a batch of samples are.
at::Tensor flattened(at::Tensor const& tensor);

/// Labels as int64. Of a floating-point target 0, 1 and -100 are labels: a probability would be
/// truncated to a class. In host memory any other value is a MetricError; on a device it becomes
/// `no_label`, without a wait, and who counts the labels refuses it with the result.
at::Tensor whole_labels(at::Tensor const& target, std::string_view metric);

/// Logits a row, and the label of each.
struct Scores {
  at::Tensor logits;  ///< [N, C]
  at::Tensor labels;  ///< [N] int64
};

/// Throws MetricError, with both shapes, where output and target are something else.
Scores scores_of(at::Tensor const& output, at::Tensor const& target, std::string_view metric);

/// The class that was decided on, and the label, of each sample, token or pixel.
struct Decisions {
  at::Tensor predicted;  ///< [N] int64
  at::Tensor labels;     ///< [N] int64
  std::int64_t classes;
};

/// `predicted`, but the class after the label where a score is NaN: a wrong one, whatever the
/// label. Of two classes it is the other one. All are [N].
at::Tensor wrong_where_nan(at::Tensor predicted, at::Tensor const& score, at::Tensor const& labels,
                           std::int64_t classes);

/// Of logits [B, C, ...] the largest decides, the first of equals; of one logit a label whether it
/// is above 0. A NaN among a label's logits is a wrong decision. Throws MetricError, with both
/// shapes, where output and target are neither; and as whole_labels does.
Decisions decisions_of(at::Tensor const& output, at::Tensor const& target, std::string_view metric);

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
  bool add(at::Tensor const& labels, std::int64_t classes);
  /// How many counted. MetricError if one of them named no class.
  double counted(std::string_view metric) const;
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

#ifndef FRUGAL_COMPILED
#include <frugal/metrics/decisions.ipp>
#endif
