// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/core/measure/measure.hpp>

#include <frugal/inline.hpp>

namespace frugal::detail {

FRUGAL_INLINE SettingsError named_like_a_metric(std::string const& name, std::string const& which) {
  return SettingsError(
      {.what = "the objective's scalar '" + name + "' and the metric '" + name + "' have one name",
       .where = which,
       .why = "a validation has one result of a name, which is the metric's",
       .fix = "Rename the scalar in Loss::scalars, or remove the metric from "
              "Validate<...>."});
}

}  // namespace frugal::detail
