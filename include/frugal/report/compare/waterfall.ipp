// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/report/compare/waterfall.hpp>

#include <frugal/base/json_writer.hpp>
#include <frugal/error.hpp>
#include <frugal/inline.hpp>

#include <algorithm>
#include <cstddef>

namespace frugal::detail {

FRUGAL_INLINE std::vector<std::string> parts_of_name(std::string_view name) {
  std::vector<std::string> parts{""};
  int depth = 0;
  for (std::size_t i = 0; i < name.size(); ++i) {
    if (depth == 0 && name.substr(i, 3) == " + ") {
      parts.emplace_back();
      i += 2;
      continue;
    }
    if (name[i] == '<') ++depth;
    if (name[i] == '>') --depth;
    parts.back() += name[i];
  }
  return parts;
}

FRUGAL_INLINE std::string lever_name(std::string const& name, std::string const& before) {
  std::vector<std::string> const old = parts_of_name(before);
  std::vector<std::string> left = old;
  std::string added;
  for (std::string const& part : parts_of_name(name)) {
    if (auto const at = std::find(left.begin(), left.end(), part); at != left.end()) {
      left.erase(at);
    } else {
      added += (added.empty() ? "+ " : " + ") + part;
    }
  }
  // "defaults" names a recipe without levers.
  bool const only_adds = left.empty() || before == "defaults";
  return only_adds && !added.empty() ? added : name;
}

FRUGAL_INLINE std::string waterfall_of(ComparisonResults const& of, std::string const& title) {
  bool const priced = of.dollars_per_hour.has_value();
  std::string const shown =
      !title.empty() ? title
                     : (of.target.given() ? "Cost to reach " + of.target.text() : "Cost of a run");
  JsonWriter out;
  out.object().add("version", 1).add("currency", "USD").add("title", shown);
  out.add("unit", priced ? "USD" : "hours").key("steps").array();
  for (std::size_t i = 0; i < of.rows.size(); ++i) {
    ComparedRecipe const& row = of.rows[i];
    auto const seconds = of.paid_seconds(row);
    if (!seconds) {
      std::string const why = row.failed() ? row.error
                                           : std::to_string(row.reached()) + " of " +
                                                 std::to_string(row.trials.size()) +
                                                 " runs reached " + of.target.text();
      throw TargetError(
          {.what = "the recipe '" + row.name + "' has no cost to show",
           .where = "Comparison::levers",
           .why = why,
           .fix = "Train for more epochs, lower the target, or leave the recipe out."});
    }
    double const hours = seconds->median / 3600;
    out.object().add("name", i == 0 ? row.name : lever_name(row.name, of.rows[i - 1].name));
    out.add("value", priced ? hours * *of.dollars_per_hour : hours).add("hours", hours);
    out.add("note", "median of " + std::to_string(seconds->count) + " runs").end();
  }
  return out.str("\n");
}

}  // namespace frugal::detail
