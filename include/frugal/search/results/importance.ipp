// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/search/results/importance.hpp>

#include <frugal/base/number_text.hpp>
#include <frugal/error.hpp>
#include <frugal/inline.hpp>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <optional>
#include <utility>
#include <variant>

namespace frugal::detail {

FRUGAL_INLINE std::size_t importance_cells(Distribution const& of) {
  constexpr std::size_t most = 50;
  if (auto const* const choice = std::get_if<Choice>(&of)) return choice->names.size();
  auto const* const whole = std::get_if<Int>(&of);
  if (whole == nullptr) return most;
  if (!whole->log) return static_cast<std::size_t>(std::min<std::uint64_t>(*count_of(of), most));
  // The logarithm to base 2 of the count, rounded up.
  auto const last = static_cast<std::uint64_t>(whole->high - whole->low);
  return std::min(static_cast<std::size_t>(std::bit_width(last)) + 1, most);
}

FRUGAL_INLINE bool is_single(Distribution const& of) {
  if (auto const* const real = std::get_if<Uniform>(&of)) return real->low == real->high;
  if (auto const* const log = std::get_if<LogUniform>(&of)) return log->low == log->high;
  return *count_of(of) == 1;
}

FRUGAL_INLINE std::size_t importance_cell(Distribution const& of, std::size_t cells, double value) {
  if (std::holds_alternative<Choice>(of)) return static_cast<std::size_t>(value);
  double low = 0, high = 1;
  bool logs = std::holds_alternative<LogUniform>(of);
  if (auto const* const real = std::get_if<Uniform>(&of)) low = real->low, high = real->high;
  if (auto const* const log = std::get_if<LogUniform>(&of)) low = log->low, high = log->high;
  if (auto const* const whole = std::get_if<Int>(&of)) {
    low = static_cast<double>(whole->low), high = static_cast<double>(whole->high);
    logs = whole->log;
  }
  if (logs) low = std::log(low), high = std::log(high), value = std::log(value);
  double const width = (high - low) / static_cast<double>(cells - 1);
  double const cell = std::ceil((value - low) / width - 0.5);
  return static_cast<std::size_t>(std::clamp(cell, 0.0, static_cast<double>(cells - 1)));
}

FRUGAL_INLINE double normal_mass(double from, double to) {
  if (from > 0) return normal_mass(-to, -from);
  double const root = std::numbers::sqrt2;
  return (std::erfc(-to / root) - std::erfc(-from / root)) / 2;
}

FRUGAL_INLINE CellMasses parzen_masses(std::vector<std::size_t> const& cells_of_trials,
                                       std::size_t cells, bool names) {
  std::vector<double> counts(cells);
  for (std::size_t const each : cells_of_trials) ++counts[each];
  auto const sum = static_cast<double>(cells_of_trials.size());
  std::vector<double> places;
  for (std::size_t i = 0; i < cells; ++i) {
    if (counts[i] > 0) places.push_back(static_cast<double>(i));
  }
  CellMasses masses(cells);
  if (names) {
    // Each kernel has the prior's share on all names, and the last kernel is uniform.
    double const prior = 1 / static_cast<double>(places.size() + 1);
    double const row = 1 + prior * static_cast<double>(cells);
    for (std::size_t i = 0; i < cells; ++i) {
      masses[i] =
          (counts[i] + sum * prior) / row / (sum + 1) + 1 / static_cast<double>(cells) / (sum + 1);
    }
    return masses;
  }
  double mean = 0, squares = 0;
  for (std::size_t i = 0; i < cells; ++i) mean += counts[i] * static_cast<double>(i) / sum;
  for (std::size_t i = 0; i < cells; ++i) {
    squares += counts[i] * (static_cast<double>(i) - mean) * (static_cast<double>(i) - mean);
  }
  double const deviation = std::sqrt(squares / std::max(1.0, sum - 1));
  double lower = places.back(), upper = places.back(), below = 0;  // quartiles, of whole numbers
  bool has_lower = false;
  for (double const place : places) {
    below += counts[static_cast<std::size_t>(place)];
    if (!has_lower && below >= std::floor(sum / 4)) lower = place, has_lower = true;
    if (below > std::floor(sum * 3 / 4)) {
      upper = place;
      break;
    }
  }
  double const scott = 1.059 * std::min((upper - lower) / 1.34, deviation) * std::pow(sum, -0.2);
  double const least = 0.5 / 1.64;  // nine tenths of the kernel are in its own cell
  double const last = static_cast<double>(cells) - 0.5;
  auto const add = [&](double place, double width, double weight) {
    double const all = normal_mass((-0.5 - place) / width, (last - place) / width);
    for (std::size_t i = 0; i < cells; ++i) {
      double const from = static_cast<double>(i) - 0.5 - place;
      masses[i] += weight / (sum + 1) * normal_mass(from / width, (from + 1) / width) / all;
    }
  };
  for (double const place : places) {
    add(place, std::max(scott, least), counts[static_cast<std::size_t>(place)]);
  }
  add(static_cast<double>(cells - 1) / 2, static_cast<double>(cells), 1);
  return masses;
}

FRUGAL_INLINE double pearson_divergence(CellMasses const& best, CellMasses const& all) {
  double sum = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    double const of_all = all[i] + 1e-12;
    double const ratio = (best[i] + 1e-12) / of_all - 1;
    sum += of_all * ratio * ratio;
  }
  return sum;
}

FRUGAL_INLINE double quantile_value(std::vector<ImportanceSample> const& of, double quantile) {
  std::vector<double> values;
  for (ImportanceSample const& each : of) values.push_back(each.value);
  std::ranges::sort(values);
  auto const count =
      static_cast<std::size_t>(std::ceil(quantile * static_cast<double>(values.size())));
  return values[std::max<std::size_t>(count, 1) - 1];
}

}  // namespace frugal::detail

namespace frugal {

FRUGAL_INLINE std::vector<SettingImportance> setting_importance(
    SearchDomain const& domain, std::vector<ImportanceSample> samples,
    ImportanceOptions const& options) {
  if (!(options.target > 0 && options.target < options.region && options.region <= 1)) {
    throw SettingsError(
        {.what = "the best " + detail::general(options.target, 6) + " of the best " +
                 detail::general(options.region, 6) + " trials are not a part of them",
         .where = "setting_importance",
         .why = "an importance is how the best trials differ from more of them",
         .fix = "Give a target above 0, and a region above the target and up to 1."});
  }
  std::erase_if(samples, [](ImportanceSample const& each) { return !std::isfinite(each.value); });
  std::vector<SettingImportance> all{{.name = SearchDomain::recipe_parameter}};
  for (SearchedSetting const& each : domain.settings) all.push_back({.name = each.name});
  double const best = samples.empty() ? 0 : detail::quantile_value(samples, options.target);
  if (!samples.empty() && options.region < 1) {
    double const edge = detail::quantile_value(samples, options.region);
    std::erase_if(samples, [&](ImportanceSample const& each) { return each.value > edge; });
  }
  auto const count = static_cast<double>(samples.size());
  auto const of_best = static_cast<double>(std::ranges::count_if(
      samples, [&](ImportanceSample const& each) { return each.value <= best; }));
  for (std::size_t i = 0; i < all.size(); ++i) {
    Distribution const values =
        i == 0 ? Distribution(domain.recipe_choice()) : domain.settings[i - 1].values;
    std::size_t const cells = detail::importance_cells(values);
    std::vector<std::size_t> here, best_here;
    for (ImportanceSample const& each : samples) {
      auto const value = i == 0 ? std::optional(static_cast<double>(each.candidate.recipe))
                                : each.candidate.values.at(i - 1);
      if (!value) continue;
      here.push_back(detail::is_single(values) ? 0
                                               : detail::importance_cell(values, cells, *value));
      if (each.value <= best) best_here.push_back(here.back());
    }
    all[i].trials = here.size();
    // One trial alone says nothing of a setting.
    if (samples.size() < 2 || here.size() < 2 || best_here.empty() || detail::is_single(values))
      continue;
    bool const names = std::holds_alternative<Choice>(values);
    double const divergence = detail::pearson_divergence(
        detail::parzen_masses(best_here, cells, names), detail::parzen_masses(here, cells, names));
    double const part = static_cast<double>(best_here.size()) / of_best;
    double const of_all = static_cast<double>(here.size()) / count;
    all[i].importance = part * part / of_all * divergence * (of_best / count) * (of_best / count);
  }
  double sum = 0;
  for (SettingImportance const& each : all) sum += each.importance;
  for (SettingImportance& each : all) each.share = sum > 0 ? each.importance / sum : 0;
  std::ranges::sort(all, [](SettingImportance const& one, SettingImportance const& other) {
    return one.importance == other.importance ? one.name < other.name
                                              : one.importance > other.importance;
  });
  return all;
}

FRUGAL_INLINE std::vector<SettingImportance> setting_importance(SearchDomain const& domain,
                                                                SearchHistory const& history,
                                                                std::size_t objective,
                                                                ImportanceOptions const& options) {
  std::vector<ImportanceSample> samples;
  for (SearchTrial const& trial : history.trials) {
    if (trial.state != TrialState::complete || trial.repeats || trial.rungs.empty()) continue;
    samples.push_back({trial.candidate, trial.rungs.back().values.at(objective)});
  }
  return setting_importance(domain, std::move(samples), options);
}

}  // namespace frugal
