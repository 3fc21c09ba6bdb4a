// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/base/number_text.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <iterator>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace frugal::plan {

/// What a number of a plan counts.
enum class Unit { count, ratio, share, usd, usd_per_hour, hours, seconds, bytes, flop, per_hour };

constexpr std::string_view name_of(Unit unit) {
  constexpr std::array<std::string_view, 10> names{"",      "ratio",   "share", "USD",  "USD/h",
                                                   "hours", "seconds", "bytes", "FLOP", "per hour"};
  return names[static_cast<std::size_t>(unit)];
}

namespace detail {

using frugal::detail::fixed;
using frugal::detail::general;

/// 1.3 billion as "1.3 G": powers of 1000, as the units of networks and data sheets.
std::string scaled(double value, char const* suffix);

std::string text_of(double value, Unit unit);

}  // namespace detail

/// One number, with its name in JSON ("on_demand_cost").
struct PlanRow {
  std::string key{};
  double value = 0;
  Unit unit = Unit::count;
  std::string note{};
};

struct PlanSection {
  std::string title{};
  std::vector<PlanRow> rows{};
  std::vector<std::string> notes{};  ///< sentences: advice, sources, warnings
};

/// The numbers of a plan, as a table for people and as JSON for programs.
struct Plan {
  std::vector<PlanSection> sections{};

  PlanSection& add(std::string title);
  Plan& operator+=(Plan other) {
    std::move(other.sections.begin(), other.sections.end(), std::back_inserter(sections));
    return *this;
  }

  /// The value of a key; NaN if there is none.
  double operator[](std::string_view key) const {
    for (PlanSection const& section : sections) {
      for (PlanRow const& row : section.rows) {
        if (row.key == key) return row.value;
      }
    }
    return std::nan("");
  }

  friend std::ostream& operator<<(std::ostream& out, Plan const& plan) {
    std::size_t keys = 0, values = 0;
    for (PlanSection const& section : plan.sections) {
      for (PlanRow const& row : section.rows) {
        keys = std::max(keys, row.key.size());
        values = std::max(values, detail::text_of(row.value, row.unit).size());
      }
    }
    char const* separator = "";
    for (PlanSection const& section : plan.sections) {
      out << std::exchange(separator, "\n") << section.title << '\n';
      for (PlanRow const& row : section.rows) {
        std::string key = row.key;
        std::replace(key.begin(), key.end(), '_', ' ');
        std::string const value = detail::text_of(row.value, row.unit);
        out << "  " << key << std::string(keys - key.size() + 2 + values - value.size(), ' ')
            << value;
        if (!row.note.empty()) out << "  " << row.note;
        out << '\n';
      }
      for (std::string const& note : section.notes) out << "  " << note << '\n';
    }
    return out;
  }

  /// {"version":1,"sections":[{"title":...,"rows":[{"key","value","unit","note"}],"notes":[]}]}. A
  /// value that is not finite is null.
  std::string json() const;
};

}  // namespace frugal::plan

#ifndef FRUGAL_COMPILED
#include <frugal/report/plan/plan.ipp>
#endif
