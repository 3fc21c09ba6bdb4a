// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/core/measure/measure.hpp>

#include <frugal/inline.hpp>

#include <c10/util/Exception.h>

namespace frugal::detail {

FRUGAL_INLINE SettingsError named_like_a_metric(std::string const& name, std::string const& which) {
  return SettingsError(
      {.what = "the objective's scalar '" + name + "' and the metric '" + name + "' have one name",
       .where = which,
       .why = "a validation has one result of a name, which is the metric's",
       .fix = "Rename the scalar in Loss::scalars, or remove the metric from "
              "Validate<...>."});
}

FRUGAL_INLINE void rethrow_of_source(Measuring const& how) {
  // An evaluation is of the source that its caller has given.
  if (how.is_alone) throw;
  std::string const place =
      "in the " + how.which + " data" + (how.is_trial ? ", tried before the first step" : "");
  try {
    throw;
  } catch (Error& error) {
    error.add_place(place);
    throw;
  } catch (c10::Error& error) {
    error.add_context(place);
    throw;
  }
}

}  // namespace frugal::detail
