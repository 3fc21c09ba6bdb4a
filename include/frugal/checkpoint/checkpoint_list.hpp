// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/checkpoint/checkpoint.hpp>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace frugal {

/// A folder among the checkpoints that is not a valid checkpoint.
struct Damage {
  std::filesystem::path folder;
  std::string why;
};

/// The contents of a folder of checkpoints.
struct CheckpointList {
  std::vector<SavedCheckpoint> whole;  ///< with a readable manifest; newest first
  std::vector<Damage> damaged;         ///< sorted by name
};

namespace detail {

/// The step in a folder's name, if the name has the form that commit() gives: step-00000500 or
/// step-00000500.2. Users may rename folders.
std::optional<std::uint64_t> step_of_name(std::string_view name);

}  // namespace detail

/// Reads the manifest of a folder. StoreError if it cannot be read, FormatError if it is damaged or
/// its step differs from the one in the folder's name.
SavedCheckpoint read_checkpoint(std::filesystem::path const& folder);

/// Reads the manifests of all checkpoints in a folder. A folder may have any name that does not
/// state another step; names that begin with a dot are skipped. Errors other than damage are
/// thrown: silently taking an older checkpoint because the newest was written by a newer library
/// (NewerFormatError), or because this user may not read it, would lose training.
CheckpointList list_checkpoints(std::filesystem::path const& folder);

}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/checkpoint/checkpoint_list.ipp>
#endif
