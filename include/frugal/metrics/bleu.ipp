// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/metrics/bleu.hpp>

#include <frugal/error.hpp>
#include <frugal/inline.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <span>

namespace frugal::detail {

FRUGAL_INLINE std::map<TokenNumbers::Ids, std::int64_t> ngrams_of(TokenNumbers::Ids const& ids,
                                                                  std::size_t order) {
  std::map<TokenNumbers::Ids, std::int64_t> counts;
  for (std::size_t at = 0; at + order <= ids.size(); ++at) {
    auto const begin = ids.begin() + static_cast<std::ptrdiff_t>(at);
    ++counts[TokenNumbers::Ids(begin, begin + static_cast<std::ptrdiff_t>(order))];
  }
  return counts;
}

FRUGAL_INLINE void NgramCounts::add(TokenNumbers::Ids const& hypothesis,
                                    std::vector<TokenNumbers::Ids> const& references) {
  if (references.empty()) {
    throw MetricError({.what = "a text has no reference",
                       .where = "metric bleu",
                       .why = "the list of references is empty",
                       .fix = "Give one reference or more for each hypothesis."});
  }
  // Of two that are as close the shorter one.
  auto const distance = [&](std::size_t length) {
    return length > hypothesis.size() ? length - hypothesis.size() : hypothesis.size() - length;
  };
  std::size_t closest = references.front().size();
  for (TokenNumbers::Ids const& each : references) {
    std::size_t const length = each.size();
    bool const nearer = distance(length) < distance(closest);
    if (nearer || (distance(length) == distance(closest) && length < closest)) closest = length;
  }
  for (std::size_t n = 0; n < orders; ++n) {
    std::map<TokenNumbers::Ids, std::int64_t> most;
    for (TokenNumbers::Ids const& each : references) {
      for (auto const& [ngram, count] : ngrams_of(each, n + 1)) {
        std::int64_t& known = most[ngram];
        known = std::max(known, count);
      }
    }
    for (auto const& [ngram, count] : ngrams_of(hypothesis, n + 1)) {
      auto const found = most.find(ngram);
      if (found != most.end()) right_[n] += static_cast<double>(std::min(count, found->second));
      all_[n] += static_cast<double>(count);
    }
  }
  length_ += static_cast<double>(hypothesis.size());
  reference_ += static_cast<double>(closest);
  sentences_ += 1;
}

FRUGAL_INLINE double NgramCounts::bleu() const {
  if (sentences_ == 0) return std::numeric_limits<double>::quiet_NaN();
  if (std::ranges::all_of(right_, [](double count) { return count == 0; })) return 0;
  double logarithms = 0;
  double smoothing = 1;
  for (std::size_t n = 0; n < orders; ++n) {
    if (all_[n] == 0) return 0;
    if (right_[n] == 0) smoothing *= 2;
    double const share = right_[n] == 0 ? 1 / (smoothing * all_[n]) : right_[n] / all_[n];
    logarithms += std::log(100 * share);
  }
  double const brevity = length_ < reference_ ? std::exp(1 - reference_ / length_) : 1;
  return brevity * std::exp(logarithms / static_cast<double>(orders));
}

}  // namespace frugal::detail
