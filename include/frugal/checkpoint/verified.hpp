// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/base/file_stamp.hpp>
#include <frugal/checkpoint/checkpoint.hpp>
#include <frugal/checkpoint/manifest.hpp>
#include <frugal/error.hpp>
#include <frugal/inline.hpp>

#include <sys/stat.h>

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
  FRUGAL_INLINE bool holds(SavedCheckpoint const& checkpoint) {
    auto const known = known_.find(checkpoint.folder);
    if (known != known_.end() && stamps_of(checkpoint) == known->second) return true;
    try {
      verify(checkpoint);
    } catch (StoreError const& error) {
      if (!is_damage(error)) throw;
      return false;
    }
    remember(checkpoint);
    return true;
  }

  void forget(std::filesystem::path const& folder) { known_.erase(folder); }

 private:
  FRUGAL_INLINE static std::optional<std::vector<FileStamp>> stamps_of(
      SavedCheckpoint const& checkpoint) {
    std::vector<FileStamp> stamps;
    auto const add = [&](std::filesystem::path const& path) {
      struct stat status{};
      if (::stat(path.c_str(), &status) != 0) return false;
      stamps.push_back(FileStamp::of(status));
      return true;
    };
    if (!add(checkpoint.folder / Manifest::file_name)) return std::nullopt;
    for (FileEntry const& entry : checkpoint.manifest.files) {
      if (!add(checkpoint.folder / entry.name)) return std::nullopt;
    }
    return stamps;
  }

  std::map<std::filesystem::path, std::vector<FileStamp>> known_;
};

}  // namespace frugal::detail
