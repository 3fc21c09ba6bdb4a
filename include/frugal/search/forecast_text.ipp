// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/search/forecast_text.hpp>

#include <frugal/base/columns.hpp>
#include <frugal/base/number_text.hpp>
#include <frugal/inline.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace frugal::detail {

FRUGAL_INLINE std::string forecast_text(SearchForecast const& all, SearchSchedule const& schedule,
                                        RungUnit unit, std::string const& sampler, bool learns,
                                        bool measured, Finalists const& finalists) {
  std::string text = schedule.text() + ", candidates by " + sampler + "\n";
  if (learns) {
    double trials = 0;
    for (SearchForecast::Row const& each : all.rows) trials += each.rung == 0 ? each.worst : 0;
    text += all.learnt == 0 ? "The sampler sees no results: this schedule draws all trials before "
                              "the first one ends. "
                              "Hyperband, Asha, MedianStop and RandomSearch show it some.\n"
                            : "The sampler sees results for " + std::to_string(all.learnt) +
                                  " of " + fixed_short(trials, 0) + " trials.\n";
  }
  if (!frugal::is_deterministic(unit)) {
    text += "The decisions depend on the machines' speed: the rungs are in " +
            std::string(name_of(unit)) + ".\n";
  } else if (measured) {
    text +=
        "The decisions depend on the machines' speed: an objective or the budget is in time or "
        "money.\n";
  } else if (!schedule.is_deterministic()) {
    text += "The decisions depend on the order in which results arrive, which the journal has.\n";
  } else {
    text += "The decisions are the same for any number of workers, and after kills.\n";
  }
  std::vector<std::vector<std::string>> rows{
      {"bracket", "rung", std::string("until ") + name_of(unit), "trials at most", "expected"}};
  for (SearchForecast::Row const& each : all.rows) {
    rows.push_back({std::to_string(each.bracket), std::to_string(each.rung),
                    std::to_string(each.budget), fixed_short(each.worst, 0),
                    fixed_short(each.expected, 1)});
  }
  text += watch::columns(rows, {12, 8, 20, 16, 12});
  if (all.finalists != 0) {
    text += "then " + std::to_string(all.finalists) +
            (all.finalists == 1 ? " finalist" : " finalists") + " with " +
            std::to_string(finalists.seeds - 1) + " more seeds each\n";
  }
  auto const share = [&](double cost) {
    return fixed_short(cost, 0) + " " + name_of(unit) + ", " +
           fixed_short(100 * cost / all.whole, 1) + "%";
  };
  text += "cost in the worst case, if no trial fails: " + share(all.worst) +
          " of training all its trials in full\n";
  text += "expected cost: " + share(all.expected) + "\n";
  return text;
}

}  // namespace frugal::detail
