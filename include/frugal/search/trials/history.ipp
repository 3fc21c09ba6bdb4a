// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/search/trials/history.hpp>

#include <frugal/error.hpp>
#include <frugal/inline.hpp>

#include <algorithm>
#include <limits>
#include <utility>

namespace frugal {

FRUGAL_INLINE ObjectiveValues SearchTrial::values(std::size_t objectives) const {
  if (state != TrialState::failed && !rungs.empty()) return rungs.back().values;
  return ObjectiveValues(objectives, std::numeric_limits<double>::infinity());
}

FRUGAL_INLINE SearchHistory SearchHistory::first(std::size_t count) const {
  auto const end = trials.begin() + static_cast<std::ptrdiff_t>(std::min(count, trials.size()));
  return {.trials = {trials.begin(), end}};
}

FRUGAL_INLINE std::optional<double> dollars_per_second(SearchHistory const& of,
                                                       std::optional<double> dollars_per_hour) {
  if (dollars_per_hour) return *dollars_per_hour / 3600;
  double dollars = 0, seconds = 0;
  for (SearchTrial const& each : of.trials) {
    auto const billed = [](RungResult const& rung) { return rung.dollars.has_value(); };
    auto const last = std::find_if(each.rungs.rbegin(), each.rungs.rend(), billed);
    if (last == each.rungs.rend()) continue;
    dollars += *last->dollars;
    seconds += last->seconds;
  }
  if (seconds == 0) return std::nullopt;
  return dollars / seconds;
}

FRUGAL_INLINE std::optional<double> dollars_until(SearchTrial const& of, std::size_t rung,
                                                  std::optional<double> per_second) {
  if (of.rungs.at(rung).dollars || !per_second) return of.rungs[rung].dollars;
  return of.rungs[rung].seconds * *per_second;
}

FRUGAL_INLINE std::optional<double> dollars_of(SearchTrial const& of,
                                               std::optional<double> per_second) {
  if (!per_second) return std::nullopt;
  double const ended = of.rungs.empty() ? 0 : *dollars_until(of, of.rungs.size() - 1, per_second);
  return ended + of.spent_seconds * *per_second;
}

FRUGAL_INLINE std::optional<double> dollars_of(SearchHistory const& of,
                                               std::optional<double> per_second) {
  if (!per_second) return std::nullopt;
  double all = 0;
  for (SearchTrial const& each : of.trials) all += *dollars_of(each, per_second);
  return all;
}

}  // namespace frugal

namespace frugal::detail {

FRUGAL_INLINE std::vector<std::string> trial_warnings(SearchHistory const& history,
                                                      std::size_t most) {
  struct Found {
    std::string text;
    std::size_t first, count;
  };
  std::vector<Found> all;
  for (std::size_t i = 0; i < history.trials.size(); ++i) {
    for (std::string const& text : history.trials[i].warnings) {
      auto const known = std::ranges::find(all, text, &Found::text);
      if (known == all.end()) {
        all.push_back({text, i, 1});
      } else {
        ++known->count;
      }
    }
  }
  std::vector<std::string> lines;
  for (Found const& each : all) {
    if (lines.size() == most) {
      lines.push_back("trials have " + std::to_string(all.size() - most) + " further warnings");
      break;
    }
    std::string who = "trial " + std::to_string(each.first);
    if (each.count > 1) {
      who += " and " + std::to_string(each.count - 1) + (each.count == 2 ? " other" : " others");
    }
    lines.push_back(who + ": " + each.text);
  }
  return lines;
}

}  // namespace frugal::detail
