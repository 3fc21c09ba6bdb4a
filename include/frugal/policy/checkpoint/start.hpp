// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <frugal/checkpoint/checkpoint.hpp>
#include <frugal/checkpoint/run_directory.hpp>
#include <frugal/policy/checkpoint/options.hpp>

namespace frugal::detail {

/// The checkpoint that a start with Resume::Exact continues from.
struct Start {
  std::optional<SavedCheckpoint> checkpoint{};
  bool is_fork = false;                 ///< it is another run's, and this run has saved nothing yet
  std::vector<Damage> damaged{};        ///< newer ones of that run
  std::string returned_to{};            ///< its folder's name, if `from` names it in this run
  std::vector<SavedCheckpoint> lost{};  ///< newer ones of this run, which are to be removed
};

/// The value that names the checkpoint to which a run has returned, in later ones of that run.
inline constexpr char const* returned_path = "policies/Checkpoint/returned/to";

/// Whether a path is in this run's folder of checkpoints.
bool is_own(RunDirectory const& directory, std::filesystem::path const& path);

/// A run that goes on from one of its own checkpoints. Once it has saved, that checkpoint is behind
/// it, and later starts with the same settings continue from the newest one.
Start return_to(RunDirectory const& directory, std::optional<SavedCheckpoint> newest,
                std::filesystem::path const& from, OnNewer on_newer);

/// `newest`: the newest valid checkpoint of the run. `from`: see Checkpoint::from. StoreError and
/// FormatError if a checkpoint there cannot be read or is damaged.
Start choose_start(RunDirectory const& directory, std::optional<SavedCheckpoint> newest,
                   std::filesystem::path from, OnNewer on_newer);

}  // namespace frugal::detail

#ifndef FRUGAL_COMPILED
#include <frugal/policy/checkpoint/start.ipp>
#endif
