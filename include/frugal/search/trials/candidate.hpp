// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

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
  void require() const;

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

/// Whether a candidate has a recipe of the domain, and a value exactly for the settings that apply.
bool is_candidate_of(SearchDomain const& domain, Candidate const& candidate);

}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/search/trials/candidate.ipp>
#endif
