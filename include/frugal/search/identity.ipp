// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/search/identity.hpp>

#include <frugal/inline.hpp>
#include <frugal/search/trials/distribution.hpp>

#include <cstddef>
#include <optional>

namespace frugal::detail {

FRUGAL_INLINE SearchIdentity search_identity(SearchSettings const& settings,
                                             SearchDomain const& domain,
                                             std::string const& schedule,
                                             std::string const& sampler,
                                             std::vector<RunLimits> const& limits) {
  SearchIdentity all;
  std::string text;
  auto const separate = [&text] { text += text.empty() ? "" : "; "; };
  auto const put = [&](char const* name) {
    all.emplace_back(name, text);
    text.clear();
  };
  for (std::string const& each : domain.recipes) separate(), text += each;
  put("recipes");
  for (SearchedSetting const& each : domain.settings) {
    separate();
    text += each.name + " " + distribution_text(each.values);
    for (std::size_t const recipe : each.recipes) text += " @" + std::to_string(recipe);
  }
  put("settings");
  for (SearchObjective const& each : settings.objectives) {
    separate();
    text += (each.maximise ? "most " : "least ") + each.name;
  }
  put("objectives");
  text = schedule;
  put("schedule");
  text = sampler;
  put("sampler");
  auto const number = [](std::optional<std::uint64_t> const& of) {
    return of ? std::to_string(*of) : std::string("?");
  };
  for (RunLimits const& each : limits) {
    separate();
    text += number(each.total_steps) + " steps, " + number(each.samples_per_epoch) +
            " samples an epoch";
  }
  put("runs");
  // Hours and dollars stop a search, and these decide what it trains.
  if (settings.budget.steps) text = std::to_string(*settings.budget.steps) + " steps";
  if (settings.budget.samples) text = std::to_string(*settings.budget.samples) + " samples";
  put("budget");
  text = std::to_string(settings.settings.seed);
  put("seed");
  Finalists const finalists = settings.repeated();
  text = std::to_string(finalists.count) + " over " + std::to_string(finalists.seeds) + " seeds";
  if (settings.objectives.size() > 1 && !settings.winner_by.empty()) {
    text += " by " + settings.winner_by;
  }
  put("finalists");
  return all;
}

}  // namespace frugal::detail
