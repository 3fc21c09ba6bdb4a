// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/search/trials/candidate.hpp>

#include <frugal/base/json.hpp>
#include <frugal/base/json_writer.hpp>
#include <frugal/error.hpp>
#include <frugal/inline.hpp>

#include <algorithm>
#include <cstddef>
#include <set>
#include <utility>

namespace frugal::detail {

FRUGAL_INLINE void refuse_distribution(std::string const& name, std::string why, char const* fix) {
  throw SettingsError({.what = "the setting '" + name + "' has no values",
                       .where = "a search space",
                       .why = std::move(why),
                       .fix = fix});
}

FRUGAL_INLINE std::string range_text(double low, double high) {
  return "its range is " + std::to_string(low) + " to " + std::to_string(high);
}

}  // namespace frugal::detail

namespace frugal {

FRUGAL_INLINE void require_values(Distribution const& of, std::string const& name) {
  if (auto const* const real = std::get_if<Uniform>(&of)) {
    if (detail::is_finite_range(real->low, real->high)) return;
    detail::refuse_distribution(name, detail::range_text(real->low, real->high),
                                "Give finite numbers, the lower one first.");
  }
  if (auto const* const log = std::get_if<LogUniform>(&of)) {
    if (detail::is_finite_range(log->low, log->high) && log->low > 0) return;
    detail::refuse_distribution(name, detail::range_text(log->low, log->high),
                                "Give finite numbers above 0, the lower one first.");
  }
  if (auto const* const whole = std::get_if<Int>(&of)) {
    // A double holds each exactly.
    constexpr std::int64_t most = std::int64_t{1} << 53;
    bool const fits = whole->low <= whole->high && whole->low >= -most && whole->high <= most;
    bool const logs = !whole->log || (whole->low >= 1 && whole->step == 1);
    if (fits && logs && whole->step >= 1) return;
    detail::refuse_distribution(name,
                                "it goes from " + std::to_string(whole->low) + " to " +
                                    std::to_string(whole->high) + " in steps of " +
                                    std::to_string(whole->step) +
                                    (whole->log ? ", by its logarithm" : ""),
                                "Give the lower number first, and a step of 1 or more; by the "
                                "logarithm begin at 1 or more, in "
                                "steps of 1.");
  }
  if (auto const* const choice = std::get_if<Choice>(&of)) {
    std::vector<std::string> names = choice->names;
    std::ranges::sort(names);
    auto const twice = std::ranges::adjacent_find(names);
    if (!names.empty() && twice == names.end()) return;
    detail::refuse_distribution(
        name,
        names.empty() ? "it is a choice among none" : "its choices have '" + *twice + "' twice",
        "Give names, each once.");
  }
}

FRUGAL_INLINE std::optional<std::uint64_t> count_of(Distribution const& of) {
  if (auto const* const whole = std::get_if<Int>(&of)) {
    return static_cast<std::uint64_t>((whole->high - whole->low) / whole->step) + 1;
  }
  if (auto const* const choice = std::get_if<Choice>(&of)) return choice->names.size();
  return std::nullopt;
}

FRUGAL_INLINE double value_at(Distribution const& of, double u) {
  u = std::clamp(u, 0.0, std::nextafter(1.0, 0.0));
  if (auto const* const real = std::get_if<Uniform>(&of)) {
    return std::min(real->low + u * (real->high - real->low), real->high);
  }
  if (auto const* const log = std::get_if<LogUniform>(&of)) {
    double const value =
        std::exp(std::log(log->low) + u * (std::log(log->high) - std::log(log->low)));
    return std::clamp(value, log->low, log->high);  // the logarithms are rounded
  }
  if (auto const* const whole = std::get_if<Int>(&of); whole != nullptr && whole->log) {
    auto const low = static_cast<double>(whole->low), high = static_cast<double>(whole->high);
    // Each number has the interval from half below to half above.
    double const begin = std::log(low - 0.5), end = std::log(high + 0.5);
    return std::clamp(std::round(std::exp(begin + u * (end - begin))), low, high);
  }
  auto const count = static_cast<double>(*count_of(of));
  double const index = std::min(std::floor(u * count), count - 1);
  auto const* const whole = std::get_if<Int>(&of);
  return whole == nullptr
             ? index
             : static_cast<double>(whole->low + static_cast<std::int64_t>(index) * whole->step);
}

FRUGAL_INLINE bool has_value(Distribution const& of, double value) {
  if (auto const* const real = std::get_if<Uniform>(&of)) {
    return value >= real->low && value <= real->high;
  }
  if (auto const* const log = std::get_if<LogUniform>(&of)) {
    return value >= log->low && value <= log->high;
  }
  if (value != std::floor(value)) return false;  // NaN, too
  if (auto const* const whole = std::get_if<Int>(&of)) {
    return value >= static_cast<double>(whole->low) && value <= static_cast<double>(whole->high) &&
           (static_cast<std::int64_t>(value) - whole->low) % whole->step == 0;
  }
  return value >= 0 && value < static_cast<double>(std::get<Choice>(of).names.size());
}

FRUGAL_INLINE std::string distribution_text(Distribution const& of) {
  detail::JsonWriter out;
  auto const begin = [&](char const* name) {
    out.object().add("name", name).key("attributes").object();
  };
  auto const real = [&](double low, double high, bool log) {
    begin("FloatDistribution");
    out.key("step")
        .raw("null")
        .add("low", low)
        .add("high", high)
        .key("log")
        .raw(log ? "true" : "false");
  };
  if (auto const* const uniform = std::get_if<Uniform>(&of)) {
    real(uniform->low, uniform->high, false);
  } else if (auto const* const log = std::get_if<LogUniform>(&of)) {
    real(log->low, log->high, true);
  } else if (auto const* const whole = std::get_if<Int>(&of)) {
    begin("IntDistribution");
    out.key("log").raw(whole->log ? "true" : "false");
    std::int64_t const steps = (whole->high - whole->low) / whole->step;
    out.add("step", whole->step).add("low", whole->low);
    out.add("high", whole->low + steps * whole->step);
  } else {
    begin("CategoricalDistribution");
    out.key("choices").array();
    for (std::string const& name : std::get<Choice>(of).names) out.value(name);
    out.end();
  }
  out.end().end();
  return out.str();
}

FRUGAL_INLINE std::optional<Distribution> parse_distribution(std::string_view text) {
  using detail::Json;
  std::optional<Json> const all = Json::parse(std::string(text));
  Json const* const name = all ? all->find("name") : nullptr;
  Json const* const attributes = all ? all->find("attributes") : nullptr;
  if (name == nullptr || attributes == nullptr) return std::nullopt;
  Json const *const low = attributes->find("low"), *const high = attributes->find("high"),
                    *const step = attributes->find("step"), *const log = attributes->find("log"),
                    *const choices = attributes->find("choices");
  if (name->text() == "CategoricalDistribution" && choices != nullptr) {
    Choice found;
    for (Json const& each : choices->items()) {
      if (!each.is(Json::Kind::text)) return std::nullopt;
      found.names.push_back(each.text());
    }
    return found;
  }
  if (low == nullptr || high == nullptr || log == nullptr || step == nullptr) return std::nullopt;
  if (name->text() == "FloatDistribution" && step->is(Json::Kind::null)) {
    auto const from = low->as_double(), to = high->as_double();
    if (!from || !to) return std::nullopt;
    if (log->truth()) return LogUniform{*from, *to};
    return Uniform{*from, *to};
  }
  if (name->text() == "IntDistribution") {
    auto const from = low->as_signed(), to = high->as_signed(), by = step->as_signed();
    if (!from || !to || !by) return std::nullopt;
    return Int{.low = *from, .high = *to, .step = *by, .log = log->truth()};
  }
  return std::nullopt;
}

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
