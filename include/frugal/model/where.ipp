// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/model/where.hpp>

#include <frugal/error.hpp>
#include <frugal/inline.hpp>

#include <cstddef>
#include <utility>

namespace frugal {

FRUGAL_INLINE NamePatterns::NamePatterns(std::vector<std::string> patterns) {
  for (std::string& each : patterns) patterns_.emplace_back(std::move(each));
}

FRUGAL_INLINE void NamePatterns::require_in(std::vector<std::string> const& names,
                                            std::string const& where,
                                            std::string const& what) const {
  for (NamePattern const& each : patterns_) {
    bool const found = std::any_of(names.begin(), names.end(),
                                   [&](std::string const& name) { return each.matches(name); });
    if (found) continue;
    std::string known;
    for (std::string const& name : names) known += " " + name;
    if (names.empty()) known = " (none)";
    throw SettingsError({.what = "the pattern '" + each.text() + "' matches nothing",
                         .where = where,
                         .why = "the " + what + " are:" + known,
                         .fix = "Fix the pattern: `*` stands for any text, and a name matches as "
                                "a whole."});
  }
}

}  // namespace frugal
