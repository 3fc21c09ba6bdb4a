// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/search/task.hpp>

#include <frugal/inline.hpp>

#include <limits>
#include <utility>

namespace frugal::detail {

FRUGAL_INLINE void TaskOutcome::fail(Kind how, std::string why, SearchTask const& task,
                                     std::size_t objectives) {
  kind = how;
  text = std::move(why);
  if (result.steps == 0 && !task.of.rungs.empty()) {
    result.steps = task.of.rungs.back().steps;
    result.samples = task.of.rungs.back().samples;
  }
  result.values.assign(objectives, std::numeric_limits<double>::quiet_NaN());
}

FRUGAL_INLINE void TaskOutcome::pay(SearchTask const& task, double attempt,
                                    std::optional<double> dollars_per_hour) {
  seconds = attempt;
  result.seconds = task.seconds_before + attempt;
  if (result.dollars) return;
  double const price = dollars_per_hour.value_or(0) / 3600;
  RungResult const before = task.of.rungs.empty() ? RungResult{} : task.of.rungs.back();
  if (before.dollars && before.seconds > 0) {
    double const rate = dollars_per_hour ? price : *before.dollars / before.seconds;
    result.dollars = *before.dollars + (result.seconds - before.seconds) * rate;
  } else if (dollars_per_hour) {
    result.dollars = result.seconds * price;
  }
}

}  // namespace frugal::detail
