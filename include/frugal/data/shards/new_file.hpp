// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/base/file.hpp>

#include <cstddef>
#include <filesystem>
#include <span>
#include <system_error>
#include <utility>

namespace frugal::detail {

/// Temporary names end with this; readers of folders pass over them.
inline constexpr char const* partial_suffix = ".partial";

/// A file that gets its name when it is complete and on disk. After a crash there is the whole file
/// or none of that name; a file that exists is never replaced.
class NewFile {
 public:
  explicit NewFile(std::filesystem::path path)
      : path_(std::move(path)), partial_(partial_name(path_)), file_(File::create(partial_)) {}
  NewFile(NewFile const&) = delete;
  NewFile& operator=(NewFile const&) = delete;
  ~NewFile() {
    std::error_code ignored;
    if (!published_) std::filesystem::remove(partial_, ignored);
  }

  void write(std::span<std::byte const> bytes) { file_.write(bytes); }

  /// StoreError if the name is taken by now.
  void publish();

  std::filesystem::path const& path() const noexcept { return path_; }
  /// Its name until publish().
  std::filesystem::path const& partial() const noexcept { return partial_; }

 private:
  /// Drawn, since a process number is no name: two containers that share a disk may have the same
  /// one, and so may the next start after a crash.
  static std::filesystem::path partial_name(std::filesystem::path const& path);

  std::filesystem::path path_;
  std::filesystem::path partial_;
  File file_;
  bool published_ = false;
};

/// A folder that gets its name when it is complete: until then its files are in `<folder>.partial`,
/// which goes with this object. A crash leaves that folder, and no other.
///
/// Errors  SettingsError if the folder, or its partial one, exists.
class NewFolder {
 public:
  explicit NewFolder(std::filesystem::path folder);
  NewFolder(NewFolder const&) = delete;
  NewFolder& operator=(NewFolder const&) = delete;
  ~NewFolder() {
    std::error_code ignored;
    if (!published_) std::filesystem::remove_all(partial_, ignored);
  }

  std::filesystem::path const& path() const { return path_; }
  /// Where the files are written.
  std::filesystem::path const& partial() const { return partial_; }

  void publish();

 private:
  [[noreturn]] static void refuse(std::filesystem::path const& folder);

  std::filesystem::path path_, partial_;
  bool published_ = false;
};

}  // namespace frugal::detail

#ifndef FRUGAL_COMPILED
#include <frugal/data/shards/new_file.ipp>
#endif
