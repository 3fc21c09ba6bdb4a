// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace frugal {

namespace detail {

/// Whether a name as a whole fits a pattern, in which `*` stands for any text, dots included. In
/// linear time but for patterns with several stars: after a mismatch, only the last star is tried
/// with one more character.
constexpr bool matches_pattern(std::string_view pattern, std::string_view name) {
  std::size_t p = 0, n = 0;
  std::size_t star = std::string_view::npos, covered = 0;
  while (n < name.size()) {
    // A star first: a name may have one too.
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      covered = n;
    } else if (p < pattern.size() && pattern[p] == name[n]) {
      ++p;
      ++n;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      n = ++covered;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

}  // namespace detail

/// A pattern over dotted names, such as those of named_parameters(): `*` stands for any text, also
/// for none, dots included; everything else for itself. A name matches as a whole: "encoder" does
/// not select "encoder.weight", "encoder.*" does.
class NamePattern {
 public:
  /// SettingsError for an empty pattern, which no name matches.
  explicit NamePattern(std::string pattern);

  bool matches(std::string_view name) const { return detail::matches_pattern(text_, name); }
  std::string const& text() const { return text_; }

 private:
  std::string text_;
};

}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/base/name_pattern.ipp>
#endif
