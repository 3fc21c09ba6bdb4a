// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/policy/recipe_name.hpp>

#include <frugal/inline.hpp>

namespace frugal::detail {

FRUGAL_INLINE void add_label(std::string& text, std::string const& label) {
  if (!text.empty()) text += " + ";
  text += label;
}

}  // namespace frugal::detail
