// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/base/file.hpp>
#include <frugal/base/io_error.hpp>
#include <frugal/checkpoint/manifest.hpp>
#include <frugal/error.hpp>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace frugal {

/// A committed checkpoint: its folder and its manifest. verify() checks the files against it.
struct SavedCheckpoint {
  std::filesystem::path folder;
  Manifest manifest;
  bool gold = false;  ///< a file named `gold` lies in the folder: never deleted, never moved

  std::uint64_t step() const noexcept { return manifest.step; }
};

namespace detail {

inline constexpr std::string_view gold_name = "gold";
/// Prefix of folders that are being made or removed. The holder of the lock may remove any it
/// finds.
inline constexpr std::string_view temporary_prefix = ".tmp-";

FormatError damaged(std::filesystem::path const& file, std::string why);

/// Whether an error means that the checkpoint is damaged. Too many open files, or a missing
/// permission, are faults of this process: falling back to an older checkpoint would then lose good
/// training.
bool is_damage(StoreError const& error);

/// Whether `one` is the newer save, by serial rather than by step: after a rollback the later save
/// may have the lower step. The clock does not matter.
inline bool newer(Manifest const& one, Manifest const& other) {
  return one.serial != other.serial ? one.serial > other.serial : one.step > other.step;
}

inline constexpr std::size_t read_size = std::size_t{1} << 20;

/// Opens a file of a checkpoint. FormatError if it is not a regular file or has the wrong size.
File open_file_of(SavedCheckpoint const& checkpoint, FileEntry const& entry);

void verify_file(SavedCheckpoint const& checkpoint, FileEntry const& entry);

/// Each file of at least this size is read by its own thread, so that weights and optimizer state
/// are read in parallel.
inline constexpr std::uint64_t worth_a_thread = std::uint64_t{64} << 20;

}  // namespace detail

/// Reads every file of a checkpoint and compares it with the manifest. FormatError names the first
/// file that differs, IoError the first that cannot be read. Ignores other files in the folder.
void verify(SavedCheckpoint const& checkpoint);

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
#include <frugal/checkpoint/checkpoint.ipp>
#endif
