// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/search/trial_warnings.hpp>

#include <frugal/inline.hpp>

#include <algorithm>

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
