// SPDX-License-Identifier: Apache-2.0
// Shapes: B samples, C classes, N labels, ... whatever one sample has.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <string>
#include <string_view>

#include <frugal/core/run/objective.hpp>
#include <frugal/error.hpp>
#include <frugal/metrics/decisions.hpp>
#include <frugal/metrics/name.hpp>

namespace frugal {

/// Share of labels whose logit is among the K largest: "top5" for TopK<5>. Of equal logits the
/// first count as larger, so that TopK<1> is Accuracy. A label with a NaN among its logits is not
/// there; where no label counts it is NaN.
///
/// Logits [B, C, ...] with labels [B, ...]; labels of -100 are left out. MetricError where there
/// are fewer than K classes, for other shapes, and for labels that name no class.
template <int K>
class TopK {
  static_assert(
      K >= 1,
      "frugal: TopK<K>: K is the number of classes to consider, at least 1. Write TopK<5>.");

 public:
  static constexpr std::string_view name = detail::numbered_metric_name<"top", K>;
  static constexpr bool whole_numbers = true;  // counts: exact in any order

  template <class B>
  void add(Loss const& loss, B const& batch) {
    auto const [logits, labels] =
        detail::scores_of(detail::output_of(loss, name), detail::target_of(batch), name);
    if (logits.size(1) < K) refuse(logits.size(1));
    // A label that is left out is moved to a class that there is, and is not right there.
    at::Tensor const place = labels.clamp(0, logits.size(1) - 1);
    at::Tensor const own = logits.gather(1, place.unsqueeze(1));
    at::Tensor const first = at::arange(logits.size(1), labels.options()).lt(place.unsqueeze(1));
    at::Tensor const ahead = logits.gt(own).logical_or_(logits.eq(own).logical_and_(first));
    // Nothing is greater than a NaN, and it is greater than nothing; the largest is NaN where one
    // is.
    at::Tensor const numbers = logits.amax(1).isnan().logical_not_();
    right_.add(ahead.sum(1).lt(K).logical_and_(place.eq(labels)).logical_and_(numbers).sum());
    labels_.add(labels, logits.size(1));
  }
  template <class Sum>
  void reduce(Sum&& sum) {
    right_.reduce(sum);
    labels_.reduce(sum);
  }
  double result() const { return right_.value() / labels_.counted(name); }
  template <class Archive>
  void persist(Archive& archive) {
    right_.persist(archive, "right");
    labels_.persist(archive);
  }

 private:
  [[noreturn]] static void refuse(std::int64_t classes) {
    throw MetricError({.what = "there are fewer classes than TopK looks at",
                       .where = "metric " + std::string(name),
                       .why = "the output has " + std::to_string(classes) + " classes, and K is " +
                              std::to_string(K),
                       .fix = "Write a smaller K."});
  }

  detail::Tally right_;
  detail::LabelTally labels_;
};

}  // namespace frugal
