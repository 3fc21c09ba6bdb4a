// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>
#include <utility>

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
  std::pair<std::string_view, double> slowest() const;

  StageSeconds& operator+=(StageSeconds const& other) {
    read += other.read;
    transform += other.transform;
    collate += other.collate;
    copy += other.copy;
    return *this;
  }
};

}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/data/loading/stages.ipp>
#endif
