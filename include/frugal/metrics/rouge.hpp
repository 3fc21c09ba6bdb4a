// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>
#include <vector>

#include <frugal/core/run/metrics.hpp>
#include <frugal/metrics/token_numbers.hpp>

namespace frugal {

namespace detail {

/// The three scores of a text and a reference.
struct RougeScores {
  double one = 0, two = 0, longest = 0;
};
RougeScores rouge_of(TokenNumbers::Ids const& hypothesis, TokenNumbers::Ids const& reference);

}  // namespace detail

/// ROUGE of texts in tokens: "rouge1", "rouge2" and "rougeL", each the mean F1 over the texts, from 0 to 1, of
/// single tokens, pairs, and the longest common subsequence. Values are those of the package rouge-score, of these
/// tokens, without stemming.
///
///     Rouge rouge;
///     rouge.add(hypothesis, reference);                 // std::vector<std::string>, or ids
///     rouge.add_multi(hypothesis, {first, second});     // of each score the best reference counts
///     rouge.result()["rougeL"];
///
/// NaN without a text. A text or a reference without tokens scores 0, and so does one of a single token in "rouge2".
/// Time of a text: its length times that of its reference. `reduce(sum)` adds up processes, `persist(archive)` saves.
class Rouge {
 public:
  static constexpr std::string_view name = "rouge";

  template <TokenSequence Text>
  void add(Text const& hypothesis, Text const& reference) {
    detail::TokenNumbers ids;
    detail::TokenNumbers::Ids const own = ids(hypothesis);
    add_best(own, {ids(reference)});
  }
  /// MetricError without a reference.
  template <TokenSequence Text>
  void add_multi(Text const& hypothesis, std::vector<Text> const& references) {
    detail::TokenNumbers ids;
    detail::TokenNumbers::Ids const own = ids(hypothesis);
    std::vector<detail::TokenNumbers::Ids> all;
    for (Text const& each : references) all.push_back(ids(each));
    add_best(own, all);
  }
  template <class Sum>
  void reduce(Sum&& sum) {
    one_ = sum(one_);
    two_ = sum(two_);
    longest_ = sum(longest_);
    texts_ = sum(texts_);
  }
  Metrics result() const;
  template <class Archive>
  void persist(Archive& archive) {
    archive("one", one_);
    archive("two", two_);
    archive("longest", longest_);
    archive("texts", texts_);
  }

 private:
  void add_best(detail::TokenNumbers::Ids const& hypothesis,
                std::vector<detail::TokenNumbers::Ids> const& references);

  double one_ = 0, two_ = 0, longest_ = 0;  ///< sums over the texts
  double texts_ = 0;
};

}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/metrics/rouge.ipp>
#endif
