// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>
#include <utility>

#include <frugal/inline.hpp>

namespace frugal {

/// Seconds that the workers of a loader spent in each stage of making batches, added up over the
/// workers.
struct StageSeconds {
  double read = 0;       ///< get() of the set, without transforms
  double transform = 0;  ///< functions of Transformed
  double collate = 0;    ///< making a batch of samples
  double copy = 0;       ///< to page-locked memory

  double total() const { return read + transform + collate + copy; }

  /// The stage that takes the most time, and its share of the total.
  FRUGAL_INLINE std::pair<std::string_view, double> slowest() const {
    std::pair<std::string_view, double> most{"read", read};
    if (transform > most.second) most = {"transform", transform};
    if (collate > most.second) most = {"collate", collate};
    if (copy > most.second) most = {"copy", copy};
    if (total() > 0) most.second /= total();
    return most;
  }

  StageSeconds& operator+=(StageSeconds const& other) {
    read += other.read;
    transform += other.transform;
    collate += other.collate;
    copy += other.copy;
    return *this;
  }
};

}  // namespace frugal
