// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/core/run/recipe_traits.hpp>

#include <frugal/error.hpp>
#include <frugal/inline.hpp>

#include <string>

namespace frugal::detail {

FRUGAL_INLINE int require_micro_batches(int given, std::string_view policy) {
  if (given >= 1) return given;
  throw SettingsError({.what = "a step has " + std::to_string(given) + " micro-batches",
                       .where = std::string(policy) + "::micro_batches",
                       .why = "an optimizer step needs at least one",
                       .fix = "Give 1 or more."});
}

}  // namespace frugal::detail
