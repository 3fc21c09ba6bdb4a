// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/core/run/learning_rate.hpp>

#include <frugal/base/number_text.hpp>
#include <frugal/error.hpp>
#include <frugal/inline.hpp>

#include <limits>

namespace frugal {

FRUGAL_INLINE std::vector<std::pair<std::string, double>> LearningRate::each() const {
  std::vector<std::pair<std::string, double>> rates;
  if (groups_.size() < 2) return rates;
  for (GroupRate const& group : groups_) rates.emplace_back(group.name, of(group));
  return rates;
}

FRUGAL_INLINE void LearningRate::set_factor(double value, Counters const& at) {
  if (!(value >= 0 && value <= std::numeric_limits<double>::max())) [[unlikely]] {
    refuse(value, at,
           "the factor of a Schedule, or of a policy that sets one, must be finite and 0 or more",
           "Check the curves of the Schedule and their members.");
  }
  factor_ = value;
}

FRUGAL_INLINE void LearningRate::set_scale(double value, Counters const& at) {
  if (!(value >= 0 && value <= std::numeric_limits<double>::max())) [[unlikely]] {
    refuse(value, at, "a scale must be finite and 0 or more",
           "Check what the policy that calls set_learning_rate_scale computes it from.");
  }
  scale_ = value;
}

FRUGAL_INLINE void LearningRate::refuse(double value, Counters const& at, std::string why,
                                        std::string fix) {
  throw SettingsError(
      {.what = "the learning rate would be multiplied by " + detail::general(value, 6),
       .where = "epoch " + std::to_string(at.epoch) + ", before step " + std::to_string(at.step),
       .why = std::move(why),
       .fix = std::move(fix)});
}

}  // namespace frugal
