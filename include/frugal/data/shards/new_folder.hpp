// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/base/folder.hpp>
#include <frugal/error.hpp>

#include <filesystem>
#include <system_error>
#include <utility>

namespace frugal::detail {

/// A folder that gets its name when it is complete: until then its files are in `<folder>.partial`,
/// which goes with this object. A crash leaves that folder, and no other.
///
/// Errors  SettingsError if the folder, or its partial one, exists.
class NewFolder {
 public:
  explicit NewFolder(std::filesystem::path folder)
      : path_(folder.has_filename() ? std::move(folder) : folder.parent_path()),
        partial_(path_.string() + ".partial") {
    for (std::filesystem::path const& each : {path_, partial_}) {
      std::error_code ignored;
      if (std::filesystem::exists(std::filesystem::symlink_status(each, ignored))) refuse(each);
    }
    create_folders(partial_);
  }
  NewFolder(NewFolder const&) = delete;
  NewFolder& operator=(NewFolder const&) = delete;
  ~NewFolder() {
    std::error_code ignored;
    if (!published_) std::filesystem::remove_all(partial_, ignored);
  }

  std::filesystem::path const& path() const { return path_; }
  /// Where the files are written.
  std::filesystem::path const& partial() const { return partial_; }

  void publish() {
    if (!rename_to_free(partial_, path_)) refuse(path_);
    published_ = true;
    sync_folder(path_.has_parent_path() ? path_.parent_path() : std::filesystem::path("."));
  }

 private:
  [[noreturn]] static void refuse(std::filesystem::path const& folder) {
    throw SettingsError({.what = "the folder to pack into exists",
                         .where = folder.string(),
                         .why = "nothing is overwritten",
                         .fix = folder.extension() == ".partial"
                                    ? "Another process packs into it, or one did and was killed: "
                                      "then remove it."
                                    : "Name a new folder."});
  }

  std::filesystem::path path_, partial_;
  bool published_ = false;
};

}  // namespace frugal::detail
