// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/core/source/sample_set.hpp>
#include <frugal/error.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace frugal::detail {

/// The files that paths mean: a folder stands for the files in it that end with `ending`, by name.
/// SettingsError if there is none.
inline std::vector<std::filesystem::path> table_files(
    std::vector<std::filesystem::path> const& paths, std::string_view ending) {
  std::vector<std::filesystem::path> files;
  for (std::filesystem::path const& path : paths) {
    std::error_code ignored;
    if (!std::filesystem::is_directory(path, ignored)) {
      files.push_back(path);
      continue;
    }
    auto const begin = static_cast<std::ptrdiff_t>(files.size());
    for (auto const& entry : std::filesystem::directory_iterator(path)) {
      if (entry.path().filename().string().ends_with(ending)) files.push_back(entry.path());
    }
    std::sort(files.begin() + begin, files.end());
  }
  if (files.empty()) {
    throw SettingsError({.what = "there are no files to read",
                         .where = paths.empty() ? "" : paths.front().string(),
                         .why = paths.empty()
                                    ? "the list of paths is empty"
                                    : "no file in the folder ends with " + std::string(ending),
                         .fix = "Give files, or a folder that has such."});
  }
  return files;
}

/// StoreError if there is a file of this name: said before hours of writing, not after.
inline void require_free(std::filesystem::path const& path) {
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) return;
  throw StoreError({.what = "the file exists",
                    .where = path.string(),
                    .why = "written data is never replaced",
                    .fix = "Remove it, or write to another place."});
}

/// Path, size and time of a file: what changes when its content has.
inline std::string file_identity(std::filesystem::path const& path) {
  std::error_code error;
  auto const size = std::filesystem::file_size(path, error);
  auto const time = std::filesystem::last_write_time(path, error);
  return std::filesystem::absolute(path).string() + ' ' + std::to_string(size) + ' ' +
         std::to_string(time.time_since_epoch().count());
}

/// Which group of rows holds a row.
class GroupIndex {
 public:
  void add(std::uint64_t rows) { ends_.push_back(size() + rows); }

  std::uint64_t size() const { return ends_.empty() ? 0 : ends_.back(); }
  std::size_t groups() const { return ends_.size(); }
  std::uint64_t first(std::size_t group) const { return group == 0 ? 0 : ends_[group - 1]; }

  /// The group of row `index`. DataError if that is not below size().
  std::size_t group(std::uint64_t index) const {
    require_sample(index, size(), "a table");
    return static_cast<std::size_t>(std::upper_bound(ends_.begin(), ends_.end(), index) -
                                    ends_.begin());
  }

  std::vector<std::uint64_t> sizes() const {
    std::vector<std::uint64_t> sizes;
    for (std::size_t i = 0; i < ends_.size(); ++i) sizes.push_back(ends_[i] - first(i));
    return sizes;
  }

 private:
  std::vector<std::uint64_t> ends_;  ///< of the groups, in rows
};

}  // namespace frugal::detail
