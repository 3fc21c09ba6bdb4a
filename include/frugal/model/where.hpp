// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include <frugal/base/name_pattern.hpp>
#include <frugal/core/compose/fixed_string.hpp>

namespace frugal {

/// Which modules or parameters a policy is about: those whose dotted name matches one of the
/// patterns (NamePattern). The pattern is part of the type: `Where<"encoder.*", "head.*">`.
template <fixed_string... Patterns>
struct Where {
  static_assert(sizeof...(Patterns) > 0,
                "frugal: Where<> selects nothing. Write a pattern: Where<\"encoder.*\">, or "
                "Where<\"*\"> for everything.");
  static_assert((true && ... && !std::string_view(Patterns).empty()),
                "frugal: Where<\"\">: no name matches an empty pattern. Write Where<\"*\"> for "
                "everything.");

  static constexpr std::array<std::string_view, sizeof...(Patterns)> patterns{Patterns...};

  static constexpr bool matches(std::string_view name) {
    return (false || ... || detail::matches_pattern(Patterns, name));
  }
};

/// The same with patterns that are only known at run time.
class NamePatterns {
 public:
  NamePatterns(std::initializer_list<std::string> patterns)
      : NamePatterns(std::vector<std::string>(patterns)) {}
  explicit NamePatterns(std::vector<std::string> patterns);
  // Implicit on purpose: a function that takes patterns takes a Where as well.
  template <fixed_string... Patterns>
    requires(sizeof...(Patterns) > 0)
  NamePatterns(Where<Patterns...>)  // NOLINT(google-explicit-constructor)
      : NamePatterns(std::vector<std::string>{std::string(std::string_view(Patterns))...}) {}

  bool matches(std::string_view name) const {
    return std::any_of(patterns_.begin(), patterns_.end(),
                       [&](NamePattern const& each) { return each.matches(name); });
  }
  std::vector<NamePattern> const& patterns() const { return patterns_; }

  /// SettingsError if one of the patterns matches none of these names, which is usually a misspelt
  /// name. `where` names the policy, `what` what the names are of: "modules", "parameters".
  void require_in(std::vector<std::string> const& names, std::string const& where,
                  std::string const& what) const;

 private:
  std::vector<NamePattern> patterns_;
};

}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/model/where.ipp>
#endif
