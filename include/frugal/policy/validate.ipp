// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/policy/validate.hpp>

#include <frugal/inline.hpp>

namespace frugal::detail {

FRUGAL_INLINE std::string nothing_measured(std::string const& cadence, std::string const& end) {
  return "it measures " + cadence + ", and the run " + end +
         ": nothing is measured, and KeepBest, EarlyStop and a plateau schedule have nothing to "
         "watch";
}

}  // namespace frugal::detail
