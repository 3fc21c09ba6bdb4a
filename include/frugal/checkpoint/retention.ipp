// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/checkpoint/retention.hpp>

#include <frugal/base/in_order.hpp>
#include <frugal/error.hpp>
#include <frugal/inline.hpp>

#include <cmath>
#include <limits>
#include <set>
#include <utility>

namespace frugal {

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

FRUGAL_INLINE Removal retain(RunDirectory& run, Retention const& retention,
                             std::function<void(SavedCheckpoint&)> const& view) {
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
