// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/base/in_order.hpp>
#include <frugal/checkpoint/checkpoint.hpp>
#include <frugal/checkpoint/run_directory.hpp>
#include <frugal/error.hpp>
#include <frugal/inline.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <set>
#include <string>
#include <utility>
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
FRUGAL_INLINE std::vector<SavedCheckpoint> plan_retention(std::vector<SavedCheckpoint> checkpoints,
                                                          Retention const& retention) {
  if (retention.last == 0) {
    throw SettingsError({.what = "retention would keep no checkpoint",
                         .where = "Retention::last",
                         .why = "it is 0",
                         .fix = "Keep at least the last one."});
  }
  detail::put_in_order(checkpoints, [](SavedCheckpoint const& a, SavedCheckpoint const& b) {
    if (detail::newer(a.manifest, b.manifest)) return true;
    return !detail::newer(b.manifest, a.manifest) && a.folder < b.folder;
  });
  // The newest save of each step, and the newest with metrics, unless they are gold.
  std::vector<std::size_t> live;
  std::vector<std::size_t> judged;
  std::set<std::uint64_t> steps;
  std::set<std::uint64_t> judged_steps;
  for (std::size_t i = 0; i < checkpoints.size(); ++i) {
    SavedCheckpoint const& each = checkpoints[i];
    bool const newest = steps.insert(each.step()).second;
    bool const measured = !each.manifest.metrics.empty() && judged_steps.insert(each.step()).second;
    if (newest && !each.gold) live.push_back(i);
    if (measured && !each.gold) judged.push_back(i);
  }
  std::vector<bool> kept(checkpoints.size());
  for (std::size_t n = 0; n < std::min(retention.last, live.size()); ++n) kept[live[n]] = true;
  for (std::size_t const i : live) {
    std::uint64_t const step = checkpoints[i].step();
    // Every run begins with step 0; it is no milestone.
    if (retention.every != 0 && step != 0 && step % retention.every == 0) kept[i] = true;
  }
  for (BestBy const& best : retention.best) {
    auto const measured = [&](std::size_t i) {
      auto const& metrics = checkpoints[i].manifest.metrics;
      auto const found = metrics.find(best.metric);
      if (found == metrics.end()) return std::numeric_limits<double>::quiet_NaN();
      return best.highest ? -found->second : found->second;
    };
    std::vector<std::size_t> left = judged;
    for (std::size_t n = 0; n < best.count; ++n) {
      // The first of equals is the newest. A comparison with NaN is false.
      std::size_t first = left.size();
      for (std::size_t k = 0; k < left.size(); ++k) {
        double const value = measured(left[k]);
        if (first == left.size() ? !std::isnan(value) : value < measured(left[first])) first = k;
      }
      if (first == left.size()) break;
      kept[left[first]] = true;
      left.erase(left.begin() + static_cast<std::ptrdiff_t>(first));
    }
  }
  std::vector<SavedCheckpoint> out;
  for (std::size_t i = 0; i < checkpoints.size(); ++i) {
    if (!kept[i] && !checkpoints[i].gold) out.push_back(std::move(checkpoints[i]));
  }
  return out;
}

/// Deletes what plan_retention selects, and returns the result. Never deletes the last valid
/// checkpoint: if none of the kept ones can be read back whole, one that would be deleted is kept.
/// Damaged checkpoints do not count and are not touched.
///
/// If the checkpoints cannot be read now, nothing is deleted and the reason is in `left`: the
/// previous save is safe, and the next one tries again. LockError if the folder has been replaced.
/// `view` may take metrics from a checkpoint that are not to be compared.
FRUGAL_INLINE Removal retain(RunDirectory& run, Retention const& retention,
                             std::function<void(SavedCheckpoint&)> const& view = {}) {
  std::vector<SavedCheckpoint> gone;
  run.require_lock();
  try {
    std::vector<SavedCheckpoint> valid = run.list().whole;
    if (view) std::for_each(valid.begin(), valid.end(), view);
    // From the newest until one is valid. Damaged ones before it do not count towards the limits.
    auto const first =
        std::find_if(valid.begin(), valid.end(),
                     [&](SavedCheckpoint const& checkpoint) { return run.holds(checkpoint); });
    valid.erase(valid.begin(), first);
    if (!valid.empty()) gone = plan_retention(std::move(valid), retention);
  } catch (StoreError const& error) {
    return run.could_not_look(error);
  }
  return run.remove(gone);
}

}  // namespace frugal
