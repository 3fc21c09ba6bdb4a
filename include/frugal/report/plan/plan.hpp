// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/base/json_writer.hpp>
#include <frugal/base/number_text.hpp>
#include <frugal/inline.hpp>
#include <frugal/report/plan/amount_text.hpp>

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
FRUGAL_INLINE std::string scaled(double value, char const* suffix) {
  constexpr std::array<char const*, 9> prefixes{"", "k", "M", "G", "T", "P", "E", "Z", "Y"};
  std::size_t at = 0;
  while (std::abs(value) >= 999.95 && at + 1 < prefixes.size()) {
    value /= 1000;
    ++at;
  }
  std::string const number = at == 0 ? general(value, 4) : fixed(value, 1);
  std::string out = number + ' ' + prefixes[at] + suffix;
  while (!out.empty() && out.back() == ' ') out.pop_back();
  return out;
}

FRUGAL_INLINE std::string text_of(double value, Unit unit) {
  if (!std::isfinite(value)) {
    if (!(value > 0)) return "unknown";
    return unit == Unit::per_hour ? "none" : "never ends";
  }
  switch (unit) {
    case Unit::count:
      return scaled(value, "");
    case Unit::ratio:
      return general(value, 4);
    case Unit::share:
      return fixed(value * 100, 1) + " %";
    case Unit::usd:
      return dollars_text(value);
    case Unit::usd_per_hour:
      return dollars_text(value) + "/h";
    case Unit::hours:
      return fixed(value, value < 100 ? 2 : 0) + " h";
    case Unit::seconds:
      if (value < 1) return fixed(value * 1000, 1) + " ms";
      return fixed(value, value < 600 ? 1 : 0) + " s";
    case Unit::bytes:
      return scaled(value, "B");
    case Unit::flop:
      return general(value, 3) + " FLOP";
    case Unit::per_hour:
      break;
  }
  return general(value, 3) + " per hour";
}

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

  FRUGAL_INLINE PlanSection& add(std::string title) {
    sections.push_back({.title = std::move(title)});
    return sections.back();
  }
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
  FRUGAL_INLINE std::string json() const {
    frugal::detail::JsonWriter out;
    out.object().add("version", 1).key("sections").array();
    for (PlanSection const& section : sections) {
      out.on_line(0).object().add("title", section.title).key("rows").array();
      for (PlanRow const& row : section.rows) {
        out.on_line(1).object().add("key", row.key).add("value", row.value);
        out.add("unit", name_of(row.unit)).add("note", row.note).end();
      }
      out.end().key("notes").array();
      for (std::string const& note : section.notes) out.value(note);
      out.end().end();
    }
    return out.on_line(0).str("\n");
  }
};

}  // namespace frugal::plan
