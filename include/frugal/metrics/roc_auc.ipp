// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/metrics/roc_auc.hpp>

#include <frugal/inline.hpp>

namespace frugal::detail {

FRUGAL_INLINE RankedPairs::RankedPairs(std::vector<Scored>& scores) {
  for (Scored const& each : scores) {
    has_nan_ = has_nan_ || std::isnan(each.score);
    ++(each.positive ? positives_ : negatives_);
  }
  if (has_nan_) return;
  std::sort(scores.begin(), scores.end(),
            [](Scored const& a, Scored const& b) { return a.score < b.score; });
  std::uint64_t below = 0;
  for (auto at = scores.begin(); at != scores.end();) {
    std::uint64_t equal[2] = {0, 0};
    double const score = at->score;
    for (; at != scores.end() && at->score == score; ++at) ++equal[at->positive ? 1 : 0];
    twice_ += equal[1] * (2 * below + equal[0]);
    below += equal[0];
  }
}

FRUGAL_INLINE double RankedPairs::area() const {
  if (has_nan_) return std::numeric_limits<double>::quiet_NaN();
  return static_cast<double>(twice_) /
         (2 * static_cast<double>(positives_) * static_cast<double>(negatives_));
}

}  // namespace frugal::detail
