// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/data/loading/stages.hpp>
#include <frugal/inline.hpp>

namespace frugal {

FRUGAL_INLINE std::pair<std::string_view, double> StageSeconds::slowest() const {
  std::pair<std::string_view, double> most{"read", read};
  if (transform > most.second) most = {"transform", transform};
  if (collate > most.second) most = {"collate", collate};
  if (copy > most.second) most = {"copy", copy};
  if (total() > 0) most.second /= total();
  return most;
}

}  // namespace frugal
