// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/report/plan/plan.hpp>

#include <frugal/base/json_writer.hpp>
#include <frugal/inline.hpp>
#include <frugal/report/plan/money.hpp>

namespace frugal::plan::detail {

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

}  // namespace frugal::plan::detail

namespace frugal::plan {

FRUGAL_INLINE PlanSection& Plan::add(std::string title) {
  sections.push_back({.title = std::move(title)});
  return sections.back();
}

FRUGAL_INLINE std::string Plan::json() const {
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

}  // namespace frugal::plan
