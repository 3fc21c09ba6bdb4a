// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/report/progress/gauge_texts.hpp>

#include <frugal/base/number_text.hpp>
#include <frugal/base/text_width.hpp>
#include <frugal/inline.hpp>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <optional>
#include <string_view>

namespace frugal::watch::detail {

FRUGAL_INLINE std::vector<std::string> gauge_texts(
    std::vector<std::pair<std::string, double>> const& gauges) {
  auto const value_of = [&](std::string_view name) -> std::optional<double> {
    for (auto const& [each, value] : gauges) {
      if (each == name && std::isfinite(value)) return value;
    }
    return {};
  };
  std::vector<std::string> texts;
  auto const spent = [&](char const* name, auto&& text) {
    auto const now = value_of(name);
    auto const all = value_of(std::string(name) + "_projected");
    if (now && all) texts.push_back(text(*now) + " of " + text(*all));
    if (now && !all) texts.push_back(text(*now));
    if (!now && all) texts.push_back(text(*all) + " projected");
  };
  auto const dollars = [](double value) {
    return "$" + frugal::detail::fixed(value, std::abs(value) < 0.995 ? 3 : 2);
  };
  spent("dollars", dollars);
  // Hours are what is known if the price is not.
  if (!value_of("dollars")) {
    spent("hours", [](double value) { return short_number(value) + " h"; });
  }
  for (auto const& [name, value] : gauges) {
    static constexpr std::string_view shown[] = {"dollars",
                                                 "dollars_projected",
                                                 "hours",
                                                 "hours_projected",
                                                 "kilowatt_hours_projected",
                                                 "memory_bytes",
                                                 "device_memory_bytes"};
    if (std::find(std::begin(shown), std::end(shown), name) != std::end(shown)) continue;
    if (name == "device_idle") {
      texts.push_back("idle " + short_number(100 * value) + "%");
    } else if (name == "kilowatt_hours") {
      spent("kilowatt_hours", [](double energy) { return short_number(energy) + " kWh"; });
    } else if (name == "kg_co2") {
      texts.push_back(short_number(value) + " kg CO2");
    } else {
      texts.push_back(printable(name) + " " + short_number(value));
    }
  }
  return texts;
}

}  // namespace frugal::watch::detail
