// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/data/shards/new_file.hpp>

#include <frugal/base/folder.hpp>
#include <frugal/base/io_error.hpp>
#include <frugal/error.hpp>
#include <frugal/inline.hpp>

#include <sys/random.h>

#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <string>
#include <system_error>
#include <utility>

namespace frugal::detail {

FRUGAL_INLINE void NewFile::publish() {
  file_.sync();
  file_.close();
  if (!rename_to_free(partial_, path_)) {
    throw StoreError({.what = "the file exists",
                      .where = path_.string(),
                      .why = "written data is never replaced",
                      .fix = "Remove it, or write to another place."});
  }
  published_ = true;
  auto const folder = path_.parent_path();
  sync_folder(folder.empty() ? "." : folder);
}

FRUGAL_INLINE std::filesystem::path NewFile::partial_name(std::filesystem::path const& path) {
  std::uint64_t drawn = 0;
  if (::getrandom(&drawn, sizeof drawn, 0) != sizeof drawn) {
    throw io_error("getrandom", path, errno);
  }
  auto name = "." + path.filename().string() + "-" + std::to_string(drawn) + partial_suffix;
  return path.parent_path() / name;
}

FRUGAL_INLINE NewFolder::NewFolder(std::filesystem::path folder)
    : path_(folder.has_filename() ? std::move(folder) : folder.parent_path()),
      partial_(path_.string() + ".partial") {
  for (std::filesystem::path const& each : {path_, partial_}) {
    std::error_code ignored;
    if (std::filesystem::exists(std::filesystem::symlink_status(each, ignored))) refuse(each);
  }
  create_folders(partial_);
}

FRUGAL_INLINE void NewFolder::publish() {
  if (!rename_to_free(partial_, path_)) refuse(path_);
  published_ = true;
  sync_folder(path_.has_parent_path() ? path_.parent_path() : std::filesystem::path("."));
}

FRUGAL_INLINE void NewFolder::refuse(std::filesystem::path const& folder) {
  throw SettingsError({.what = "the folder to pack into exists",
                       .where = folder.string(),
                       .why = "nothing is overwritten",
                       .fix = folder.extension() == ".partial"
                                  ? "Another process packs into it, or one did and was killed: "
                                    "then remove it."
                                  : "Name a new folder."});
}

}  // namespace frugal::detail
