// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <filesystem>
#include <optional>

namespace frugal::detail {

/// The identity of a file, whatever its name: two names with equal ids are one file, and a name
/// whose id has changed means another file.
struct FileId {
  std::uint64_t device = 0;
  std::uint64_t inode = 0;

  bool operator==(FileId const&) const = default;

  static FileId of(struct stat const& status) {
    return {.device = status.st_dev, .inode = status.st_ino};
  }

  /// A symbolic link counts as its own file. Nothing if there is no file; errno then says why.
  static std::optional<FileId> of(std::filesystem::path const& path) noexcept;
};

/// What distinguishes a file from another one of its name, and from its own later content.
struct FileStamp {
  FileId id{};
  std::uint64_t size = 0;     ///< in bytes
  std::int64_t modified = 0;  ///< when its content changed, in nanoseconds since 1970
  std::int64_t changed = 0;   ///< when content, name, mode or owner changed: no program can set it

  bool operator==(FileStamp const&) const = default;

  static FileStamp of(struct stat const& status);
};

}  // namespace frugal::detail

#ifndef FRUGAL_COMPILED
#include <frugal/base/file_id.ipp>
#endif
