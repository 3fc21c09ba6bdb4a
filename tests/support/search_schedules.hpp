// SPDX-License-Identifier: Apache-2.0
// Schedules that are played by one worker, with scripted results.
#pragma once

#include <frugal/error.hpp>
#include <frugal/search/schedule/schedule.hpp>
#include <frugal/search/trials/history.hpp>
#include <frugal/search/trials/ranking.hpp>

#include <cstddef>
#include <cstdint>
#include <fstream>
#include <functional>
#include <limits>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace frugal_test::support::search_schedules {

inline constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();

inline nlohmann::json file() {
  std::ifstream in(std::string(FRUGAL_TEST_DIR) + "/reference/search_schedules.json");
  return nlohmann::json::parse(in);
}

template <class Call>
std::string refusal(Call const& call) {
  try {
    call();
  } catch (frugal::SettingsError const& error) {
    return error.what();
  }
  return {};
}

struct Played {
  frugal::SearchHistory history{};
  std::size_t created = 0;
  std::uint64_t cost = 0;                                      ///< in the unit of the rungs
  std::vector<std::pair<std::size_t, std::size_t>> trained{};  ///< trial and rung, in their order

  std::vector<std::size_t> at_rung(std::size_t rung) const {
    std::vector<std::size_t> all;
    for (std::size_t i = 0; i < history.trials.size(); ++i) {
      if (history.trials[i].rungs.size() > rung) all.push_back(i);
    }
    return all;
  }
};

/// Plays a schedule to its end. `value(trial, rung)`; `ends(trial)`: it ends by itself at its first rung.
inline Played play(
    frugal::SearchSchedule const& schedule,
    std::function<double(std::size_t, std::size_t)> const& value,
    std::function<bool(std::size_t)> const& ends = [](std::size_t) { return false; }) {
  Played played;
  auto const rungs = schedule.rungs();
  auto const train = [&](std::size_t number) {
    frugal::SearchTrial& trial = played.history.trials[number];
    std::size_t const rung = trial.rungs.size();
    std::vector<std::uint64_t> const& own = rungs.at(trial.bracket);
    played.cost += own.at(rung) - (rung == 0 ? 0 : own[rung - 1]);
    played.trained.emplace_back(number, rung);
    trial.rungs.push_back({.values = {value(number, rung)}});
    trial.ended = ends(number);
    if (!frugal::is_finite(trial.rungs.back().values)) {
      trial.state = frugal::TrialState::failed;
    } else if (trial.ended || trial.rungs.size() == own.size()) {
      trial.state = frugal::TrialState::complete;
    }
  };
  int decisions = 0;
  auto const pays = [&](frugal::SearchDecision const& decision) {
    if (++decisions > 100000) throw std::runtime_error("the schedule does not end");
    if (decision.kind == frugal::SearchDecision::Kind::create) ++played.created;
    return true;
  };
  frugal::detail::play_schedule(schedule, played.history, pays, train);
  return played;
}

}  // namespace frugal_test::support::search_schedules
