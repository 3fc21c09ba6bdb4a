// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <frugal/search/schedule/schedule.hpp>
#include <frugal/search/trials/finalists.hpp>

namespace frugal {

/// The cost of a search, before its first step.
struct SearchForecast {
  struct Row {
    std::size_t bracket = 0;
    std::size_t rung = 0;
    std::uint64_t budget = 0;  ///< where the rung ends, in the unit of the rungs
    double worst = 0;     ///< trials that come here if each decision lets as many go on as it can
    double expected = 0;  ///< if results come in any order and do not cross
  };
  std::vector<Row> rows{};
  /// Cost of all rungs and of the finalists' repeats, in the unit of the rungs, if no trial fails: the next one
  /// may go on in its place.
  double worst = 0;
  double expected = 0;       ///< likewise
  std::size_t learnt = 0;    ///< trials whose candidates are drawn when results of others are there
  double whole = 0;          ///< cost of training all its trials in full
  std::size_t complete = 0;  ///< trials that come to their end, in the worst case
  std::size_t finalists = 0;  ///< of these that are repeated
  double repeats = 0;         ///< cost of their repeats, a part of `worst` and of `expected`
};

namespace detail {

struct SimulatedSearch {
  std::vector<std::vector<double>> counts{};  ///< trials by bracket and rung
  std::size_t learnt = 0;
};

/// Trials that come to each rung of each bracket, if trial i has the value `value(i)` at every rung.
SimulatedSearch simulate_search(SearchSchedule const& schedule, std::optional<std::uint64_t> budget,
                                std::size_t objectives,
                                std::function<double(std::size_t)> const& value);

double cost_of(std::vector<std::vector<std::uint64_t>> const& rungs,
               std::vector<std::vector<double>> const& counts);

}  // namespace detail

/// The worst case has each trial better than all before it; the expected one is the mean over `draws` random
/// orders.
SearchForecast forecast(SearchSchedule const& schedule, std::optional<std::uint64_t> budget,
                        std::size_t objectives, Finalists const& finalists, std::size_t draws = 16);

}  // namespace frugal

namespace frugal::detail {

/// The text of explain(). `measured`: an objective or the budget is in time or money.
std::string forecast_text(SearchForecast const& all, SearchSchedule const& schedule, RungUnit unit,
                          std::string const& sampler, bool learns, bool measured,
                          Finalists const& finalists);

}  // namespace frugal::detail

#ifndef FRUGAL_COMPILED
#include <frugal/search/forecast.ipp>
#endif
