// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/error.hpp>
#include <frugal/store/checkpoint.hpp>
#include <frugal/store/run_directory.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace frugal {

/// Checkpoints kept for what they measured.
struct BestBy {
  std::string metric;    ///< its name in the manifest; checkpoints without it, or NaN, do not count
  bool highest = false;  ///< which way is better
  std::size_t count = 1;  ///< how many; of equals the newest
};

/// Which checkpoints are kept. Those marked gold are, whatever is said here: a mark is a file named
/// `gold` in the checkpoint's folder, so that anybody can set it with `touch` and see it with `ls`,
/// and it travels with the folder; the manifest is sealed and would not bear it. Gold takes
/// nobody's place: the numbers here are of the others.
struct Retention {
  std::size_t last = 3;      ///< the newest; at least 1
  std::vector<BestBy> best;  ///< and the best by each of these
  std::uint64_t every = 0;   ///< and for ever all whose step is a multiple of it; 0: none
};

/// Which of `checkpoints` to delete, newest first. A function of its arguments alone.
///
/// Of two saves of one step the older is superseded: only gold keeps it.
/// SettingsError if nothing at all would be kept.
inline std::vector<SavedCheckpoint> plan_retention(std::vector<SavedCheckpoint> checkpoints,
                                                   Retention const& retention) {
  if (retention.last == 0) {
    throw SettingsError({.what = "retention would keep no checkpoint",
                         .where = "Retention::last",
                         .why = "it is 0",
                         .mend = "Keep at least the last one."});
  }
  std::sort(checkpoints.begin(), checkpoints.end(), [](auto const& a, auto const& b) {
    if (detail::newer(a.manifest, b.manifest)) return true;
    return !detail::newer(b.manifest, a.manifest) && a.folder < b.folder;
  });
  std::set<std::uint64_t> steps;
  std::vector<std::size_t> live;  // the newest save of each step, where that one is not gold
  for (std::size_t i = 0; i < checkpoints.size(); ++i) {
    bool const superseded = !steps.insert(checkpoints[i].step()).second;
    if (!superseded && !checkpoints[i].gold) live.push_back(i);
  }
  std::set<std::size_t> kept(live.begin(), live.begin() + static_cast<std::ptrdiff_t>(std::min(
                                                              retention.last, live.size())));
  for (std::size_t const i : live) {
    std::uint64_t const step = checkpoints[i].step();
    // Step 0 is where every run begins, and no milestone.
    if (retention.every != 0 && step != 0 && step % retention.every == 0) kept.insert(i);
  }
  for (BestBy const& best : retention.best) {
    std::vector<std::pair<double, std::size_t>> ranked;
    for (std::size_t const i : live) {
      auto const found = checkpoints[i].manifest.metrics.find(best.metric);
      if (found == checkpoints[i].manifest.metrics.end() || std::isnan(found->second)) continue;
      ranked.emplace_back(best.highest ? -found->second : found->second, i);
    }
    std::sort(ranked.begin(), ranked.end());  // equals by place: newest first
    for (std::size_t n = 0; n < std::min(best.count, ranked.size()); ++n) {
      kept.insert(ranked[n].second);
    }
  }
  std::vector<SavedCheckpoint> out;
  for (std::size_t i = 0; i < checkpoints.size(); ++i) {
    if (!kept.contains(i) && !checkpoints[i].gold) out.push_back(std::move(checkpoints[i]));
  }
  return out;
}

/// Deletes what plan_retention says, and returns it. The last valid checkpoint is never deleted: if
/// none of those that are kept can be read back whole, neither is one that would go.
/// What is damaged counts for nothing and is not touched.
inline std::vector<SavedCheckpoint> retain(RunDirectory& run, Retention const& retention) {
  std::vector<SavedCheckpoint> all = run.list().whole;
  std::vector<SavedCheckpoint> valid = all;
  // From the newest on until one of them is valid. Damaged ones before it do not use up a place.
  auto const first =
      std::find_if(valid.begin(), valid.end(),
                   [&](SavedCheckpoint const& checkpoint) { return run.holds(checkpoint); });
  valid.erase(valid.begin(), first);
  if (valid.empty()) return {};
  return run.remove(plan_retention(std::move(valid), retention));
}

}  // namespace frugal
