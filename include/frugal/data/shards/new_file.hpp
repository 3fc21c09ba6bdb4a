// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/base/file.hpp>

#include <sys/random.h>

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

}  // namespace frugal::detail

#ifndef FRUGAL_COMPILED
#include <frugal/data/shards/new_file.ipp>
#endif
