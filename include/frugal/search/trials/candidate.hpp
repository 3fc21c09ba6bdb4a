// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace frugal {

/// A real number, all alike.
struct Uniform {
  double low = 0, high = 1;
  friend bool operator==(Uniform const&, Uniform const&) = default;
};
/// A real number whose logarithm is uniform: for rates and decays. `low` is above 0.
struct LogUniform {
  double low = 1e-4, high = 1;
  friend bool operator==(LogUniform const&, LogUniform const&) = default;
};
/// A whole number: low, low + step, and so on up to high, all alike. With `log` small ones are as likely as
/// large ones; `low` is then 1 or more, and `step` 1.
struct Int {
  std::int64_t low = 0, high = 1, step = 1;
  bool log = false;
  friend bool operator==(Int const&, Int const&) = default;
};
/// One of several names, without an order.
struct Choice {
  std::vector<std::string> names{};
  friend bool operator==(Choice const&, Choice const&) = default;
};

/// The values of a setting. A value of it is a double: the number itself, or the index of a name.
/// The kinds, their values and their text are Optuna's (FloatDistribution, IntDistribution,
/// CategoricalDistribution).
using Distribution = std::variant<Uniform, LogUniform, Int, Choice>;

namespace detail {

void refuse_distribution(std::string const& name, std::string why, char const* fix);

inline bool is_finite_range(double low, double high) {
  return std::isfinite(low) && std::isfinite(high) && std::isfinite(high - low) && low <= high;
}
std::string range_text(double low, double high);

}  // namespace detail

/// SettingsError for a distribution without values: a range that is empty, infinite or, of a logarithm, not
/// above 0; a step that is not positive; no names, or one twice.
void require_values(Distribution const& of, std::string const& name);

/// The number of values, if that is finite.
std::optional<std::uint64_t> count_of(Distribution const& of);

/// The value at `u`, from 0 to less than 1: where u is uniform, values are distributed as they should be.
double value_at(Distribution const& of, double u);

/// Whether it is one of the values.
bool has_value(Distribution const& of, double value);

/// As Optuna writes it into its journal.
std::string distribution_text(Distribution const& of);

/// The distribution that distribution_text() or Optuna has written; null for a text that is neither, and for what a search has
/// no kind for: a real number in steps, choices that are no names.
std::optional<Distribution> parse_distribution(std::string_view text);

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
