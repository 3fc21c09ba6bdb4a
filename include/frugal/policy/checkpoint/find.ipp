// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/policy/checkpoint/find.hpp>

#include <frugal/checkpoint/checkpoint.hpp>
#include <frugal/checkpoint/run_directory.hpp>
#include <frugal/error.hpp>
#include <frugal/inline.hpp>
#include <frugal/policy/checkpoint/former_validation.hpp>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

namespace frugal::detail {

FRUGAL_INLINE void refuse_run(std::filesystem::path const& run, std::string what, std::string why,
                              std::string fix) {
  throw StoreError({.what = std::move(what),
                    .where = run.string(),
                    .why = std::move(why),
                    .fix = std::move(fix)});
}

}  // namespace frugal::detail

namespace frugal {

FRUGAL_INLINE std::filesystem::path latest_checkpoint(std::filesystem::path const& run) {
  NewestValid newest = RunDirectory(run, Access::read).newest_valid();
  if (newest.checkpoint) return newest.checkpoint->folder;
  detail::refuse_run(
      run, "the run has no complete checkpoint",
      newest.damaged.empty() ? "its folder has no checkpoint" : newest.damaged.front().why,
      "Give the Settings::run_dir of a recipe with Checkpoint.");
}

FRUGAL_INLINE std::filesystem::path best_checkpoint(std::filesystem::path const& run,
                                                    std::string_view metric, Better better) {
  CheckpointList list = RunDirectory(run, Access::read).list();
  std::string known;
  std::erase_if(list.whole, [&](SavedCheckpoint const& checkpoint) {
    auto const& metrics = checkpoint.manifest.metrics;
    auto const found = metrics.find(std::string(metric));
    if (found == metrics.end() && known.empty()) {
      for (auto const& [name, value] : metrics) known += (known.empty() ? "" : ", ") + name;
    }
    return found == metrics.end() || std::isnan(found->second);
  });
  detail::erase_former(list.whole, metric);
  auto const value_of = [&](SavedCheckpoint const& checkpoint) {
    double const value = checkpoint.manifest.metrics.find(std::string(metric))->second;
    return better == Better::lower ? value : -value;
  };
  std::ranges::stable_sort(list.whole, {}, value_of);
  for (SavedCheckpoint const& checkpoint : list.whole) {
    try {
      verify(checkpoint);
      return checkpoint.folder;
    } catch (StoreError const& error) {
      if (!detail::is_damage(error)) throw;
    }
  }
  detail::refuse_run(
      run, "no complete checkpoint of the run has the metric '" + std::string(metric) + "'",
      known.empty()
          ? "none was saved after a validation: the run has no validation data, was not due "
            "to validate before its end, or ended before"
          : "there are: " + known,
      "Give a metric of Validate, in a run that validates before it saves: Report::warnings says "
      "if its cadence is beyond the run's end.");
}

}  // namespace frugal
