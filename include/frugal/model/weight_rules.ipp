// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/model/weight_rules.hpp>

#include <frugal/error.hpp>
#include <frugal/inline.hpp>

#include <algorithm>
#include <cstddef>

namespace frugal::detail {

FRUGAL_INLINE std::optional<std::vector<std::string>> texts_of_stars(std::string_view pattern,
                                                                     std::string_view name) {
  std::size_t const star = pattern.find('*');
  if (star == std::string_view::npos) {
    if (pattern == name) return std::vector<std::string>{};
    return std::nullopt;
  }
  if (!name.starts_with(pattern.substr(0, star))) return std::nullopt;
  std::string_view const rest = pattern.substr(star + 1);
  for (std::size_t end = star; end <= name.size(); ++end) {
    if (auto more = texts_of_stars(rest, name.substr(end))) {
      more->insert(more->begin(), std::string(name.substr(star, end - star)));
      return more;
    }
  }
  return std::nullopt;
}

FRUGAL_INLINE std::string with_texts(std::string_view pattern,
                                     std::vector<std::string> const& texts) {
  std::string name;
  std::size_t next = 0;
  for (char const c : pattern) {
    if (c == '*') {
      name += texts[next++];
    } else {
      name += c;
    }
  }
  return name;
}

FRUGAL_INLINE std::string name_in_file(WeightRules const& rules, std::string const& name) {
  for (RenameWeights const& rename : rules.rename) {
    if (auto const texts = texts_of_stars(rename.to, name)) return with_texts(rename.from, *texts);
  }
  return name;
}

FRUGAL_INLINE void require_rules(WeightRules const& rules, std::vector<std::string> const& names) {
  std::string const where = "WeightRules::";
  for (RenameWeights const& rename : rules.rename) {
    if (std::ranges::count(rename.from, '*') != std::ranges::count(rename.to, '*')) {
      throw SettingsError(
          {.what = "'" + rename.from + "' and '" + rename.to + "' have different numbers of stars",
           .where = where + "rename",
           .why = "each star of one is the text of a star of the other",
           .fix = "Write as many in both, or two rules."});
    }
    NamePatterns({rename.to}).require_in(names, where + "rename", "tensors of the module");
  }
  rules.parts.require_in(names, where + "parts", "tensors of the module");
  rules.transpose.require_in(names, where + "transpose", "tensors of the module");
  rules.resize.require_in(names, where + "resize", "tensors of the module");
}

}  // namespace frugal::detail
