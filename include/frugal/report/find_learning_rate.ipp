// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/report/find_learning_rate.hpp>

#include <frugal/base/number_text.hpp>
#include <frugal/inline.hpp>

#include <string>
#include <vector>

namespace frugal {

FRUGAL_INLINE double RateRange::rate(std::uint64_t step) const {
  double const share = static_cast<double>(step) / static_cast<double>(steps - 1);
  return from * std::pow(to / from, share);
}

}  // namespace frugal

namespace frugal::detail {

FRUGAL_INLINE void require_range(RateRange const& range, double lr) {
  auto const refuse = [](std::string what, std::string why, std::string fix) {
    throw SettingsError({.what = std::move(what),
                         .where = "find_learning_rate",
                         .why = std::move(why),
                         .fix = std::move(fix)});
  };
  if (!(range.from > 0 && range.to > range.from && std::isfinite(range.to))) {
    refuse("the range is from " + detail::general(range.from, 6) + " to " +
               detail::general(range.to, 6),
           "rates are positive, and grow", "Give 0 < from < to, such as 1e-7 and 10.");
  }
  if (range.steps < 10) {
    refuse("the range test has " + std::to_string(range.steps) + " steps", "so few show no curve",
           "Give 10 steps or more; 100 is the default.");
  }
  if (!(range.smoothing >= 0 && range.smoothing < 1)) {
    refuse("smoothing is " + detail::general(range.smoothing, 6), "it is a share that is kept",
           "Give a number from 0 up to, but not including, 1.");
  }
  if (!(range.runs_away > 1)) {
    refuse("runs_away is " + detail::general(range.runs_away, 6),
           "the lowest loss would have run away", "Give more than 1; 4 is the default.");
  }
  if (!(lr > 0)) {
    refuse("the optimizer's lr is " + detail::general(lr, 6),
           "the rates of its groups are multiples of it", "Give it more than 0.");
  }
}

}  // namespace frugal::detail
