// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/error.hpp>
#include <frugal/store/file.hpp>
#include <frugal/store/folder.hpp>

#include <filesystem>
#include <string>
#include <system_error>
#include <utility>

namespace frugal::detail {

/// A file that gets its name when it is complete: it is written as `partial()`, and commit() makes
/// it durable and renames it. Without commit() it is removed.
class NewTableFile {
 public:
  /// StoreError if there is a file of that name already.
  explicit NewTableFile(std::filesystem::path path) : path_(std::move(path)) {
    partial_ = path_;
    partial_ += ".partial";
    std::error_code ignored;
    if (std::filesystem::exists(path_, ignored)) taken();
    std::filesystem::remove(partial_, ignored);
  }
  NewTableFile(NewTableFile const&) = delete;
  NewTableFile& operator=(NewTableFile const&) = delete;
  ~NewTableFile() {
    std::error_code ignored;
    if (!committed_) std::filesystem::remove(partial_, ignored);
  }

  std::filesystem::path const& path() const { return path_; }
  std::filesystem::path const& partial() const { return partial_; }

  /// Call once the file was written and closed.
  void commit() {
    File file = File::open(partial_);
    file.sync();
    file.close();
    if (!rename_to_free(partial_, path_)) taken();
    committed_ = true;
    sync_folder(path_.has_parent_path() ? path_.parent_path() : ".");
  }

 private:
  [[noreturn]] void taken() const {
    throw StoreError({.what = "there is a file of this name already",
                      .where = path_.string(),
                      .why = "",
                      .fix = "Remove it, or choose another name."});
  }

  std::filesystem::path path_;
  std::filesystem::path partial_;
  bool committed_ = false;
};

}  // namespace frugal::detail
