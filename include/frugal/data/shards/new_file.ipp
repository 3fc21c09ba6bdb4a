// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/data/shards/new_file.hpp>

#include <frugal/base/folder.hpp>
#include <frugal/base/io_error.hpp>
#include <frugal/inline.hpp>

#include <cerrno>
#include <cstdint>
#include <string>

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

}  // namespace frugal::detail
