// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/search/schedule/successive_halving.hpp>

#include <frugal/error.hpp>
#include <frugal/inline.hpp>
#include <frugal/search/trials/ranking.hpp>

#include <optional>

namespace frugal::detail {

FRUGAL_INLINE BracketSchedule::BracketSchedule(std::string text, std::vector<Bracket> brackets,
                                               SearchLimits const& limits)
    : text_(std::move(text)),
      brackets_(std::move(brackets)),
      objectives_(limits.objectives),
      learns_(limits.learns) {
  require_no_generations(limits, "a search with brackets");
}

FRUGAL_INLINE SearchDecision BracketSchedule::next_of(SearchHistory const& history,
                                                      std::size_t b) const {
  using Kind = SearchDecision::Kind;
  std::vector<Rung> const& rungs = brackets_[b].rungs;
  std::vector<std::size_t> members;
  for (std::size_t i = 0; i < history.trials.size(); ++i) {
    SearchTrial const& trial = history.trials[i];
    if (trial.bracket == b && !trial.repeats) members.push_back(i);
  }
  if (members.size() < rungs.front().trials) return {.kind = Kind::create, .bracket = b};
  for (std::size_t k = 0; k + 1 < rungs.size(); ++k) {
    std::vector<ObjectiveValues> results;
    for (std::size_t const i : members) {
      if (!has_ended_rung(history.trials[i], k)) return {.kind = Kind::wait, .bracket = b};
      results.push_back(values_at(history.trials[i], k, objectives_));
    }
    std::vector<std::size_t> order;  // the best first
    for (std::size_t const place : best_first(results)) {
      if (is_finite(results[place])) order.push_back(members[place]);
    }
    auto const goes_on = chosen_of(history, order, rungs[k + 1].trials);
    std::vector<std::size_t> chosen(order.begin(), order.begin() + goes_on);
    std::ranges::sort(chosen);
    for (std::size_t const i : chosen) {
      SearchTrial const& trial = history.trials[i];
      if (!trial.is_over() && trial.opened <= k + 1) {
        return {.kind = Kind::promote, .trial = i, .bracket = b};
      }
    }
    for (std::size_t const i : chosen) {
      if (!has_ended_rung(history.trials[i], k + 1)) return {.kind = Kind::wait, .bracket = b};
    }
    for (std::size_t const i : members) {
      bool const stays = std::ranges::binary_search(chosen, i);
      if (!stays && !history.trials[i].is_over()) {
        return {.kind = Kind::prune, .trial = i, .bracket = b};
      }
    }
    members = std::move(chosen);
  }
  for (std::size_t const i : members) {
    if (!history.trials[i].is_over()) return {.kind = Kind::wait, .bracket = b};
  }
  return {.kind = Kind::done, .bracket = b};
}

FRUGAL_INLINE std::string schedule_text(std::string name, std::vector<Bracket> const& brackets,
                                        RungUnit unit) {
  std::string text = std::move(name) + " in " + name_of(unit) + ":";
  for (Bracket const& bracket : brackets) {
    text += " [";
    for (Rung const& each : bracket.rungs) {
      if (text.back() != '[') text += ' ';
      text += std::to_string(each.trials) + "@" + std::to_string(each.budget);
    }
    text += "]";
  }
  return text;
}

FRUGAL_INLINE std::vector<std::size_t> promotable(std::vector<ObjectiveValues> const& results,
                                                  std::size_t eta) {
  std::vector<std::size_t> order = best_first(results);
  order.resize(results.size() / eta);
  std::erase_if(order, [&](std::size_t place) { return !is_finite(results[place]); });
  return order;
}

FRUGAL_INLINE AshaSchedule::AshaSchedule(std::uint64_t trials, std::vector<std::uint64_t> budgets,
                                         std::size_t eta, RungUnit unit, SearchLimits const& limits)
    : trials_(trials),
      budgets_(std::move(budgets)),
      eta_(eta),
      unit_(unit),
      objectives_(limits.objectives) {}

}  // namespace frugal::detail
