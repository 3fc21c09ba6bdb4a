// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/model/sensitivity.hpp>

#include <frugal/inline.hpp>

#include <utility>

namespace frugal {

FRUGAL_INLINE std::ostream& operator<<(std::ostream& out, Sensitivity const& found) {
  out << "loss " << found.loss << '\n';
  for (LayerSensitivity const& each : found.layers) {
    out << "  " << each.layer << ": " << std::showpos << each.change << std::noshowpos << '\n';
  }
  return out;
}

}  // namespace frugal
