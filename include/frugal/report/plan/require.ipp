// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/report/plan/require.hpp>

#include <frugal/base/number_text.hpp>
#include <frugal/error.hpp>
#include <frugal/inline.hpp>

#include <string>

namespace frugal::plan::detail {

FRUGAL_INLINE void refuse(std::string_view input, double value, std::string_view rule) {
  throw SettingsError(
      {.what = "an input of the plan is out of range",
       .where = std::string(input),
       .why = "it is " + frugal::detail::general(value, 6) + ", and must be " + std::string(rule),
       .fix = "Correct the input."});
}

}  // namespace frugal::plan::detail
