// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/policy/checkpoint/start.hpp>

#include <frugal/error.hpp>
#include <frugal/inline.hpp>
#include <frugal/policy/checkpoint/resume.hpp>
#include <frugal/policy/checkpoint/state_file.hpp>
#include <frugal/policy/checkpoint/weights.hpp>

#include <system_error>
#include <utility>
#include <variant>

namespace frugal::detail {

FRUGAL_INLINE bool is_own(RunDirectory const& directory, std::filesystem::path const& path) {
  std::error_code failure;
  return std::filesystem::equivalent(path.parent_path(), directory.checkpoints_folder(), failure);
}

FRUGAL_INLINE Start return_to(RunDirectory const& directory, std::optional<SavedCheckpoint> newest,
                              std::filesystem::path const& from, OnNewer on_newer) {
  std::string const name = from.filename().string();
  if (newest) {
    StateFile const state = read_state(*newest);
    auto const found = state.values.find(returned_path);
    auto const* const to =
        found == state.values.end() ? nullptr : std::get_if<std::string>(&found->second);
    if (to != nullptr && *to == name) {
      return {.checkpoint = std::move(newest)};
    }
  }
  SavedCheckpoint chosen = checkpoint_at(from);
  std::vector<SavedCheckpoint> lost = directory.list().whole;
  std::erase_if(
      lost, [&](SavedCheckpoint const& each) { return !newer(each.manifest, chosen.manifest); });
  if (!lost.empty() && on_newer == OnNewer::Refuse) {
    throw StateError(
        {.what = "the run has newer checkpoints than the one that it should resume from",
         .where = "Checkpoint::from, " + from.string(),
         .why = std::to_string(lost.size()) + " are newer; the newest is " +
                lost.front().folder.filename().string(),
         .fix = "Set Checkpoint::on_newer to OnNewer::Remove to remove them, or give another "
                "Settings::run_dir to continue there and keep this run as it is."});
  }
  return {.checkpoint = std::move(chosen), .returned_to = name, .lost = std::move(lost)};
}

FRUGAL_INLINE Start choose_start(RunDirectory const& directory,
                                 std::optional<SavedCheckpoint> newest, std::filesystem::path from,
                                 OnNewer on_newer) {
  if (!from.empty() && !from.has_filename()) from = from.parent_path();  // "runs/demo/"
  if (!from.empty() && is_own(directory, from)) {
    return return_to(directory, std::move(newest), from, on_newer);
  }
  std::error_code failure;
  bool const is_run = std::filesystem::equivalent(from, directory.folder(), failure);
  // Another run's is for the first start alone: later starts use the run's own.
  if (newest || from.empty() || is_run) return {.checkpoint = std::move(newest)};
  if (std::filesystem::is_regular_file(from, failure)) {
    throw SettingsError({.what = "a run cannot resume exactly from a file of weights",
                         .where = "Checkpoint::from, " + from.string(),
                         .why = "it has neither counters nor the optimizer's state",
                         .fix = "Give the folder of a run or of a checkpoint, or set "
                                "Checkpoint::resume to Resume::Weights."});
  }
  Start start{.checkpoint = {}, .is_fork = true};
  start.checkpoint = checkpoint_at(from, &start.damaged);
  return start;
}

}  // namespace frugal::detail
