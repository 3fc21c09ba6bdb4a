// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/report/compare/trial.hpp>

#include <frugal/inline.hpp>

namespace frugal {

FRUGAL_INLINE std::optional<Spread> Spread::of(std::vector<double> values) {
  if (values.empty()) return std::nullopt;
  std::sort(values.begin(), values.end());
  std::size_t const half = values.size() / 2;
  double const median =
      values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
  return Spread{median, values.front(), values.back(), values.size()};
}

FRUGAL_INLINE std::optional<double> Trial::metric(std::string_view name) const {
  for (auto const& [key, value] : metrics) {
    if (key == name) return value;
  }
  return std::nullopt;
}

FRUGAL_INLINE bool ComparedRecipe::same_weights(ComparedRecipe const& other) const {
  if (trials.empty() || trials.size() != other.trials.size()) return false;
  for (std::size_t i = 0; i < trials.size(); ++i) {
    if (trials[i].weights != other.trials[i].weights) return false;
  }
  return true;
}

FRUGAL_INLINE std::size_t ComparedRecipe::reached() const {
  std::size_t count = 0;
  for (Trial const& trial : trials) count += trial.reached ? 1U : 0U;
  return count;
}

}  // namespace frugal
