// SPDX-License-Identifier: Apache-2.0
// Shapes: B samples, C classes, ... whatever one sample has.
#pragma once

#include <ATen/ATen.h>

#include <concepts>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

#include <frugal/core/compose/fixed_string.hpp>
#include <frugal/core/run/objective.hpp>
#include <frugal/error.hpp>
#include <frugal/metrics/confusion_matrix.hpp>
#include <frugal/metrics/decisions.hpp>
#include <frugal/metrics/name.hpp>

namespace frugal {

// How a score of one class becomes one of all: as scikit-learn's `average` says.

/// The score of class 1 of two classes.
struct Binary {
  static constexpr fixed_string suffix = "";
};
/// Computed from the counts of all classes together; with one decision per label this is Accuracy.
struct Micro {
  static constexpr fixed_string suffix = "_micro";
};
/// The mean over the classes that are predicted or are labels at least once.
struct Macro {
  static constexpr fixed_string suffix = "_macro";
};
/// The mean over the classes, by how many labels each has.
struct Weighted {
  static constexpr fixed_string suffix = "_weighted";
};

namespace detail {

template <class T>
concept Averaging = std::same_as<T, Binary> || std::same_as<T, Micro> || std::same_as<T, Macro> ||
                    std::same_as<T, Weighted>;

/// What precision, recall and F1 are made of, of one class or of several.
struct ClassCount {
  double right = 0;      ///< predicted, and a label
  double predicted = 0;  ///< times
  double labels = 0;     ///< times
};

struct PrecisionOf {
  static constexpr fixed_string name = "precision";
  static double above(ClassCount const& count) { return count.right; }
  static double below(ClassCount const& count) { return count.predicted; }
};
struct RecallOf {
  static constexpr fixed_string name = "recall";
  static double above(ClassCount const& count) { return count.right; }
  static double below(ClassCount const& count) { return count.labels; }
};
struct F1Of {
  static constexpr fixed_string name = "f1";
  static double above(ClassCount const& count) { return 2 * count.right; }
  static double below(ClassCount const& count) { return count.predicted + count.labels; }
};

/// One of the three, under an average. A score that would divide by 0 is 0; without any label all
/// are NaN.
template <class Score, class Average>
class ClassScore {
  static_assert(Averaging<Average>,
                "frugal: PrecisionScore, RecallScore, F1Score: unknown average. Options: Binary, "
                "Micro, Macro, Weighted. Write F1Score<Macro>.");

 public:
  static constexpr std::string_view name = metric_name_of<Score::name, Average::suffix>;
  static constexpr bool whole_numbers = true;  // counts: exact in any order

  template <class B>
  void add(Loss const& loss, B const& batch) {
    Decisions const all = decisions_of(loss, batch, name);
    if constexpr (std::same_as<Average, Binary>) require_two(all.classes);
    table_.require(all.classes, name);
    Countable const what = countable(all);
    at::Tensor const right = what.weight * what.predicted.eq(what.labels);
    table_.add(at::stack({counted_at(what.labels, right, all.classes),
                          counted_at(what.predicted, what.weight, all.classes),
                          counted_at(what.labels, what.weight, all.classes)}),
               what.outside);
  }
  template <class Sum>
  void reduce(Sum&& sum) {
    table_.reduce(sum);
  }
  double result() const {
    at::Tensor const host = table_.on_host(name);
    // Without a label there is nothing to score.
    if (!host.defined() || host[2].sum().item<double>() == 0) {
      return std::numeric_limits<double>::quiet_NaN();
    }
    auto const* const counts = static_cast<double const*>(host.const_data_ptr());
    std::int64_t const classes = table_.classes();
    auto const of_class = [&](std::int64_t c) {
      return ClassCount{counts[c], counts[classes + c], counts[2 * classes + c]};
    };
    if constexpr (std::same_as<Average, Binary>) {
      return score(of_class(1));
    } else {
      ClassCount all;
      double sum = 0;
      double weight = 0;
      for (std::int64_t c = 0; c < classes; ++c) {
        ClassCount const one = of_class(c);
        bool const there = one.predicted + one.labels > 0;
        double const weighs = std::same_as<Average, Macro> ? (there ? 1 : 0) : one.labels;
        sum += weighs * score(one);
        weight += weighs;
        all.right += one.right;
        all.predicted += one.predicted;
        all.labels += one.labels;
      }
      if constexpr (std::same_as<Average, Micro>) return score(all);
      return sum / weight;
    }
  }
  template <class Archive>
  void persist(Archive& archive) {
    table_.persist(archive);
  }

 private:
  static double score(ClassCount const& count) {
    double const below = Score::below(count);
    return below == 0 ? 0 : Score::above(count) / below;
  }
  static void require_two(std::int64_t classes) {
    if (classes == 2) return;
    throw MetricError({.what = std::string(name) + " is of two classes",
                       .where = "metric " + std::string(name),
                       .why = "the output has " + std::to_string(classes) + " classes",
                       .fix = "Say how they are averaged: Macro, Micro or Weighted, as in "
                              "F1Score<Macro>."});
  }

  ClassTable table_;
};

}  // namespace detail

/// Share of predictions of a class that are right: "precision", "precision_macro" and so on, with
/// scikit-learn's names and values. Labels of -100 are left out.
///
/// Takes what Accuracy takes. MetricError for other shapes, for labels that name no class, and for
/// Binary with more than two classes. State: three numbers a class.
template <class Average = Binary>
using PrecisionScore = detail::ClassScore<detail::PrecisionOf, Average>;

/// Share of the labels of a class that are predicted: "recall", "recall_macro" and so on. See
/// PrecisionScore.
template <class Average = Binary>
using RecallScore = detail::ClassScore<detail::RecallOf, Average>;

/// Harmonic mean of precision and recall: "f1", "f1_macro" and so on. See PrecisionScore.
template <class Average = Binary>
using F1Score = detail::ClassScore<detail::F1Of, Average>;

}  // namespace frugal
