// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/report/plan/memory.hpp>

#include <frugal/error.hpp>
#include <frugal/inline.hpp>
#include <frugal/report/plan/require.hpp>

#include <cmath>
#include <string>
#include <utility>
#include <vector>

namespace frugal::plan {

FRUGAL_INLINE double optimizer_bytes(std::string_view name) {
  std::vector<std::string> names;
  for (OptimizerState const& each : optimizer_states) {
    if (detail::lower(each.name) == detail::lower(name)) return each.bytes;
    names.emplace_back(each.name);
  }
  throw SettingsError({.what = "the state of this optimizer is not known",
                       .where = std::string(name),
                       .why = detail::near_names(name, names),
                       .fix = "Name one of these, or give the bytes for each parameter."});
}

}  // namespace frugal::plan
