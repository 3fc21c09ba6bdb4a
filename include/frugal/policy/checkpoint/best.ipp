// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/policy/checkpoint/best.hpp>

#include <frugal/inline.hpp>

#include <cmath>

namespace frugal::detail {

FRUGAL_INLINE bool BestSoFar::look(Metrics const& measured) {
  bool improved = false;
  for (BestBy const& best : metrics_) {
    double const value = measured[best.metric];
    if (std::isnan(value)) continue;
    auto const [known, first] = values_.try_emplace(best.metric, value);
    bool const better = best.highest ? value > known->second : value < known->second;
    if (!first && !better) continue;
    known->second = value;
    improved = improved_ = true;
  }
  return improved;
}

FRUGAL_INLINE void BestSoFar::begin_save() {
  improved_ = false;
  writing_ = values_;
  is_writing_ = true;
}

FRUGAL_INLINE void BestSoFar::saved() {
  if (is_writing_) saved_ = std::exchange(writing_, {});
  is_writing_ = false;
}

FRUGAL_INLINE void BestSoFar::not_saved() {
  if (!is_writing_) return;
  for (auto const& [metric, value] : writing_) {
    auto const known = values_.find(metric);
    if (known == values_.end() || known->second != value) continue;  // improved since
    if (auto const on_disk = saved_.find(metric); on_disk != saved_.end()) {
      known->second = on_disk->second;
    } else {
      values_.erase(known);
    }
  }
  writing_.clear();
  is_writing_ = false;
}

FRUGAL_INLINE void BestSoFar::reset_to(std::vector<std::map<std::string, double>> const& on_disk) {
  values_.clear();
  for (BestBy const& best : metrics_) {
    for (auto const& metrics : on_disk) {
      auto const found = metrics.find(best.metric);
      if (found == metrics.end() || std::isnan(found->second)) continue;
      auto const [known, first] = values_.try_emplace(best.metric, found->second);
      if (!first) {
        known->second = best.highest ? std::max(known->second, found->second)
                                     : std::min(known->second, found->second);
      }
    }
  }
  saved_ = values_;
}

}  // namespace frugal::detail
