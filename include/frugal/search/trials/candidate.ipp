// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/search/trials/candidate.hpp>

#include <frugal/error.hpp>
#include <frugal/inline.hpp>

#include <set>
#include <utility>

namespace frugal {

FRUGAL_INLINE void SearchDomain::require() const {
  auto const refuse = [](std::string what, std::string why, std::string fix) {
    throw SettingsError({.what = std::move(what),
                         .where = "a search space",
                         .why = std::move(why),
                         .fix = std::move(fix)});
  };
  if (recipes.empty()) {
    refuse("the search space is empty", "no recipe is legal, so there is nothing to train",
           "Give a recipe that a Trainer accepts.");
  }
  std::set<std::string> names{recipe_parameter};
  for (SearchedSetting const& each : settings) {
    require_values(each.values, each.name);
    if (!names.insert(each.name).second) {
      refuse("two settings have the name '" + each.name + "'",
             "the journal finds values by their names, and 'recipe' is the choice among recipes",
             "Give each setting a name of its own.");
    }
    if (!each.recipes.empty() && each.recipes.back() >= recipes.size()) {
      refuse("the setting '" + each.name + "' applies to a recipe that does not exist",
             "its recipes are numbered from 0 to " + std::to_string(recipes.size() - 1),
             "Give indices of the domain's recipes.");
    }
  }
}

FRUGAL_INLINE bool is_candidate_of(SearchDomain const& domain, Candidate const& candidate) {
  if (candidate.recipe >= domain.recipes.size()) return false;
  if (candidate.values.size() != domain.settings.size()) return false;
  for (std::size_t i = 0; i < domain.settings.size(); ++i) {
    auto const& value = candidate.values[i];
    SearchedSetting const& setting = domain.settings[i];
    if (value.has_value() != setting.applies_to(candidate.recipe)) return false;
    if (value && !has_value(setting.values, *value)) return false;
  }
  return true;
}

}  // namespace frugal
