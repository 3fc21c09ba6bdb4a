// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/checkpoint/verified.hpp>

#include <frugal/checkpoint/manifest.hpp>
#include <frugal/error.hpp>
#include <frugal/inline.hpp>

#include <sys/stat.h>

namespace frugal::detail {

FRUGAL_INLINE bool Verified::holds(SavedCheckpoint const& checkpoint) {
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

FRUGAL_INLINE std::optional<std::vector<FileStamp>> Verified::stamps_of(
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

}  // namespace frugal::detail
