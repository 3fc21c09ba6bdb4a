// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/base/file_stamp.hpp>
#include <frugal/checkpoint/checkpoint.hpp>

#include <filesystem>
#include <map>
#include <optional>
#include <vector>

namespace frugal::detail {

/// Caches which checkpoints are valid, so that gigabytes are not read again at every save. An entry
/// expires when any file of the checkpoint is written to, replaced or removed.
class Verified {
 public:
  /// Call it after the checkpoint was verified, or written and fsynced.
  void remember(SavedCheckpoint const& checkpoint) {
    if (auto const stamps = stamps_of(checkpoint)) known_[checkpoint.folder] = *stamps;
  }

  /// Whether the checkpoint is valid; reads it if that is unknown. Throws errors other than damage.
  bool holds(SavedCheckpoint const& checkpoint);

  void forget(std::filesystem::path const& folder) { known_.erase(folder); }

 private:
  static std::optional<std::vector<FileStamp>> stamps_of(SavedCheckpoint const& checkpoint);

  std::map<std::filesystem::path, std::vector<FileStamp>> known_;
};

}  // namespace frugal::detail

#ifndef FRUGAL_COMPILED
#include <frugal/checkpoint/verified.ipp>
#endif
