// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/checkpoint/checkpoint.hpp>
#include <frugal/checkpoint/run_directory.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace frugal {

/// Keeps checkpoints with the best values of a metric.
struct BestBy {
  std::string metric;     ///< its name in the manifest; checkpoints without it, or with NaN, do not
                          ///< count
  bool highest = false;   ///< which direction is better
  std::size_t count = 1;  ///< how many to keep; of equals the newest
};

/// Which checkpoints are kept. Gold checkpoints are always kept. The gold mark is a file named
/// `gold` in the checkpoint's folder: anybody can set it with `touch` and see it with `ls`, and it
/// travels with the folder, while the manifest is sealed by its hash. Gold checkpoints do not count
/// towards the numbers here.
struct Retention {
  std::size_t last = 3;      ///< the newest ones; at least 1
  std::vector<BestBy> best;  ///< plus the best by each of these metrics
  std::uint64_t every = 0;   ///< plus, for ever, all whose step is a multiple of it; 0: none
};

/// The checkpoints to delete, newest first. A pure function of its arguments.
///
/// Of two saves of one step, the older is superseded: only a gold mark keeps it, or that it is
/// among the best and the newer has no metrics. SettingsError if nothing at all would be kept.
std::vector<SavedCheckpoint> plan_retention(std::vector<SavedCheckpoint> checkpoints,
                                            Retention const& retention);

/// Deletes what plan_retention selects, and returns the result. Never deletes the last valid
/// checkpoint: if none of the kept ones can be read back whole, one that would be deleted is kept.
/// Damaged checkpoints do not count and are not touched.
///
/// If the checkpoints cannot be read now, nothing is deleted and the reason is in `left`: the
/// previous save is safe, and the next one tries again. LockError if the folder has been replaced.
/// `view` may take metrics from a checkpoint that are not to be compared.
Removal retain(RunDirectory& run, Retention const& retention,
               std::function<void(SavedCheckpoint&)> const& view = {});

}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/checkpoint/retention.ipp>
#endif
