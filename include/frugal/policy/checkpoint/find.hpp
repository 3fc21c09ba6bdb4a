// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include <frugal/policy/options.hpp>
#include <frugal/policy/watched.hpp>

namespace frugal {

namespace detail {

[[noreturn]] void refuse_run(std::filesystem::path const& run, std::string what, std::string why,
                             std::string fix);

}  // namespace detail

/// The folder of a run's newest valid checkpoint: every file matches its hash. StoreError without
/// one. Takes no lock: the run may continue meanwhile.
std::filesystem::path latest_checkpoint(std::filesystem::path const& run);

/// The folder of the checkpoint with the best value of a metric, among those on disk (Keep,
/// KeepBest); of equals the newest. Ignores NaN, damaged checkpoints, and those with other
/// validation data than the newest. StoreError if no checkpoint has the metric: a checkpoint has it
/// if a validation preceded the save.
std::filesystem::path best_checkpoint(std::filesystem::path const& run, std::string_view metric,
                                      Better better);

/// `best_checkpoint<WatchAccuracy>(run)`: with the metric and direction that policies watch.
template <class Metric = WatchLoss>
std::filesystem::path best_checkpoint(std::filesystem::path const& run) {
  static_assert(detail::option::watch::has<Metric>,
                "frugal: best_checkpoint<...>: this is not a watched metric. Write "
                "best_checkpoint<WatchAccuracy>(run), or Watch<\"f1\", Better::higher>.");
  return best_checkpoint(run, Metric::name, Metric::better);
}

}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/policy/checkpoint/find.ipp>
#endif
