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

namespace detail {

/// What TopK counts.
class TopKCounts {
 public:
  void add(at::Tensor const& output, at::Tensor const& target, std::int64_t k,
           std::string_view name) {
    auto const [logits, labels] = scores_of(output, target, name);
    if (k < 1 || logits.size(1) < k) refuse(logits.size(1), k, name);
    // A label that is left out is moved to a class that there is, and is not right there.
    at::Tensor const place = labels.clamp(0, logits.size(1) - 1);
    at::Tensor const own = logits.gather(1, place.unsqueeze(1));
    at::Tensor const first = at::arange(logits.size(1), labels.options()).lt(place.unsqueeze(1));
    at::Tensor const ahead = logits.gt(own).logical_or_(logits.eq(own).logical_and_(first));
    // Nothing is greater than a NaN, and it is greater than nothing; the largest is NaN where one
    // is.
    at::Tensor const numbers = logits.amax(1).isnan().logical_not_();
    right_.add(ahead.sum(1).lt(k).logical_and_(place.eq(labels)).logical_and_(numbers).sum());
    labels_.add(labels, logits.size(1));
  }
  template <class Sum>
  void reduce(Sum&& sum) {
    right_.reduce(sum);
    labels_.reduce(sum);
  }
  double result(std::string_view name) const { return right_.value() / labels_.counted(name); }
  template <class Archive>
  void persist(Archive& archive) {
    right_.persist(archive, "right");
    labels_.persist(archive);
  }

 private:
  [[noreturn]] static void refuse(std::int64_t classes, std::int64_t k, std::string_view name) {
    throw MetricError(
        {.what = k < 1 ? "TopK looks at no class" : "there are fewer classes than TopK looks at",
         .where = "metric " + std::string(name),
         .why = "the output has " + std::to_string(classes) + " classes, and TopK::k is " +
                std::to_string(k),
         .fix = "Set TopK::k to 1 or more, and to no more than there are classes."});
  }

  Tally right_;
  LabelTally labels_;
};

}  // namespace detail

/// Share of labels whose logit is among the K largest: "top5" for TopK<5>. Of equal logits the
/// first count as larger, so that TopK<1> is Accuracy. A label with a NaN among its logits is not
/// there; where no label counts it is NaN.
///
///     TopK<5>            // the number and the name are constants
///     TopK<>{.k = n}     // the same, with the number known when the run begins; 5 if it is not set
///
/// Logits [B, C, ...] with labels [B, ...]; labels of -100 are left out. MetricError where there
/// are fewer than K classes or K is below 1, for other shapes, and for labels that name no class.
template <int... K>
struct TopK {
  static_assert(sizeof...(K) < 2, "frugal: TopK<K> takes one number. Write TopK<5>.");
};

template <int K>
struct TopK<K> {
  static_assert(
      K >= 1,
      "frugal: TopK<K>: K is the number of classes to consider, at least 1. Write TopK<5>.");
  static constexpr std::string_view name = detail::numbered_metric_name<"top", K>;
  static constexpr bool whole_numbers = true;  // counts: exact in any order
  static constexpr int k = K;

  template <class B>
  void add(Loss const& loss, B const& batch) {
    counts.add(detail::output_of(loss, name), detail::target_of(batch), k, name);
  }
  template <class Sum>
  void reduce(Sum&& sum) {
    counts.reduce(sum);
  }
  double result() const { return counts.result(name); }
  template <class Archive>
  void persist(Archive& archive) {
    counts.persist(archive);
  }

  detail::TopKCounts counts{};  ///< what it has seen
};

template <>
struct TopK<> {
  static constexpr bool whole_numbers = true;

  int k = 5;
  detail::TopKCounts counts{};

  std::string own_name() const { return "top" + std::to_string(k); }
  void each_option(auto&& visit) { visit("k", k, "labels among the k largest logits count"); }

  template <class B>
  void add(Loss const& loss, B const& batch) {
    std::string const name = own_name();
    counts.add(detail::output_of(loss, name), detail::target_of(batch), k, name);
  }
  template <class Sum>
  void reduce(Sum&& sum) {
    counts.reduce(sum);
  }
  double result() const { return counts.result(own_name()); }
  template <class Archive>
  void persist(Archive& archive) {
    counts.persist(archive);
  }
};

}  // namespace frugal
