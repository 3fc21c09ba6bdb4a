// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <frugal/error.hpp>
#include <frugal/inline.hpp>
#include <frugal/search/trials/distribution.hpp>

namespace frugal {

/// A setting of a search: its name, its values, and the recipes that have it.
struct SearchedSetting {
  std::string name{};
  Distribution values{};
  /// Indices of recipes, ascending; empty: all recipes.
  std::vector<std::size_t> recipes{};

  bool applies_to(std::size_t recipe) const {
    return recipes.empty() || std::ranges::binary_search(recipes, recipe);
  }
  friend bool operator==(SearchedSetting const&, SearchedSetting const&) = default;
};

/// A search space as values, without types: the names of its recipes, and its settings.
struct SearchDomain {
  /// The name of the parameter that chooses among recipes, in journals and tables.
  static constexpr char const* recipe_parameter = "recipe";

  std::vector<std::string> recipes{};
  std::vector<SearchedSetting> settings{};

  /// The choice among recipes as a distribution.
  Choice recipe_choice() const { return Choice{recipes}; }

  /// SettingsError without recipes, for a setting without values or without a recipe, and for a name that
  /// is given twice or is "recipe".
  FRUGAL_INLINE void require() const;

  friend bool operator==(SearchDomain const&, SearchDomain const&) = default;
};

/// One point of a search space: a recipe, and a value for each setting that applies to it.
struct Candidate {
  std::size_t recipe = 0;
  /// One for each setting of the domain; nothing if the recipe does not have it. See value_at() for what
  /// the numbers mean.
  std::vector<std::optional<double>> values{};

  friend bool operator==(Candidate const&, Candidate const&) = default;
};

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

/// Whether a candidate has a recipe of the domain, and a value exactly for the settings that apply.
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
