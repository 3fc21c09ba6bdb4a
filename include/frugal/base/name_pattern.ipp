// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/base/name_pattern.hpp>

#include <frugal/error.hpp>
#include <frugal/inline.hpp>

#include <utility>

namespace frugal {

FRUGAL_INLINE NamePattern::NamePattern(std::string pattern) : text_(std::move(pattern)) {
  if (!text_.empty()) return;
  throw SettingsError({.what = "a name pattern is empty",
                       .where = "NamePattern",
                       .why = "it would match no name",
                       .fix = "Write a name, or a pattern such as \"encoder.*\"."});
}

}  // namespace frugal
