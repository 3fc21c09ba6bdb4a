// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/metrics/rouge.hpp>

#include <frugal/error.hpp>
#include <frugal/inline.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>

namespace frugal::detail {

FRUGAL_INLINE double rouge_f1(double both, double hypothesis, double reference) {
  // 2 p r / (p + r) with p = both / hypothesis and r = both / reference.
  return both == 0 ? 0 : 2 * both / (hypothesis + reference);
}

FRUGAL_INLINE double rouge_n(TokenNumbers::Ids const& hypothesis,
                             TokenNumbers::Ids const& reference, std::size_t order) {
  auto const ngrams = [order](TokenNumbers::Ids const& ids) {
    std::map<std::pair<std::int64_t, std::int64_t>, std::int64_t> counts;
    for (std::size_t at = 0; at + order <= ids.size(); ++at) {
      ++counts[{ids[at], order == 2 ? ids[at + 1] : 0}];
    }
    return counts;
  };
  auto const number = [order](TokenNumbers::Ids const& ids) {
    return ids.size() < order ? 0.0 : static_cast<double>(ids.size() - order + 1);
  };
  auto const known = ngrams(reference);
  std::int64_t both = 0;
  for (auto const& [ngram, count] : ngrams(hypothesis)) {
    auto const found = known.find(ngram);
    if (found != known.end()) both += std::min(count, found->second);
  }
  return rouge_f1(static_cast<double>(both), number(hypothesis), number(reference));
}

FRUGAL_INLINE double rouge_longest(TokenNumbers::Ids const& hypothesis,
                                   TokenNumbers::Ids const& reference) {
  // The longest common subsequence of what has been read, for each end in the reference.
  std::vector<std::int64_t> longest(reference.size() + 1, 0);
  for (std::int64_t const token : hypothesis) {
    std::int64_t before = 0;
    for (std::size_t at = 0; at < reference.size(); ++at) {
      std::int64_t const above = longest[at + 1];
      longest[at + 1] = reference[at] == token ? before + 1 : std::max(above, longest[at]);
      before = above;
    }
  }
  return rouge_f1(static_cast<double>(longest.back()), static_cast<double>(hypothesis.size()),
                  static_cast<double>(reference.size()));
}

FRUGAL_INLINE RougeScores rouge_of(TokenNumbers::Ids const& hypothesis,
                                   TokenNumbers::Ids const& reference) {
  return {.one = rouge_n(hypothesis, reference, 1),
          .two = rouge_n(hypothesis, reference, 2),
          .longest = rouge_longest(hypothesis, reference)};
}

}  // namespace frugal::detail

namespace frugal {

FRUGAL_INLINE void Rouge::add_best(detail::TokenNumbers::Ids const& hypothesis,
                                   std::vector<detail::TokenNumbers::Ids> const& references) {
  if (references.empty()) {
    throw MetricError({.what = "a text has no reference",
                       .where = "metric rouge",
                       .why = "the list of references is empty",
                       .fix = "Give one reference or more for each hypothesis."});
  }
  detail::RougeScores best;
  for (detail::TokenNumbers::Ids const& each : references) {
    detail::RougeScores const scores = detail::rouge_of(hypothesis, each);
    best.one = std::max(best.one, scores.one);
    best.two = std::max(best.two, scores.two);
    best.longest = std::max(best.longest, scores.longest);
  }
  one_ += best.one;
  two_ += best.two;
  longest_ += best.longest;
  texts_ += 1;
}

FRUGAL_INLINE Metrics Rouge::result() const {
  Metrics found;  // 0 / 0 is NaN
  found.set("rouge1", one_ / texts_);
  found.set("rouge2", two_ / texts_);
  found.set("rougeL", longest_ / texts_);
  return found;
}

}  // namespace frugal
