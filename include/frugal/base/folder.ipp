// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/base/folder.hpp>

#include <frugal/base/in_order.hpp>
#include <frugal/inline.hpp>

#include <fcntl.h>
#include <unistd.h>

#include <system_error>

namespace frugal {

FRUGAL_INLINE void sync_folder(std::filesystem::path const& path) {
  int descriptor = -1;
  do {
    descriptor = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  } while (descriptor < 0 && errno == EINTR);
  if (descriptor < 0) throw detail::io_error("open", path, errno);
  int result = 0;
  do {
    result = ::fsync(descriptor);
  } while (result != 0 && errno == EINTR);
  int const code = errno;
  ::close(descriptor);  // nothing was written through it
  if (result != 0 && code != EINVAL) throw detail::io_error("fsync", path, code);
}

FRUGAL_INLINE bool rename_to_free(std::filesystem::path const& from,
                                  std::filesystem::path const& to) {
  if (::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE) == 0) return true;
  if (errno == EEXIST) return false;
  if (errno != EINVAL && errno != ENOSYS && errno != EOPNOTSUPP) {
    throw detail::io_error("renameat2", to, errno);
  }
  struct stat status{};
  if (::lstat(to.c_str(), &status) == 0) return false;
  rename_path(from, to);
  return true;
}

FRUGAL_INLINE bool exchange_paths(std::filesystem::path const& one,
                                  std::filesystem::path const& other) {
  if (::renameat2(AT_FDCWD, one.c_str(), AT_FDCWD, other.c_str(), RENAME_EXCHANGE) == 0) {
    return true;
  }
  if (errno == EINVAL || errno == ENOSYS || errno == EOPNOTSUPP) return false;
  throw detail::io_error("renameat2", other, errno);
}

}  // namespace frugal

namespace frugal::detail {

FRUGAL_INLINE void create_folders_to(std::filesystem::path const& path,
                                     std::filesystem::path const& wanted) {
  std::error_code ignored;
  if (path.empty() || std::filesystem::is_directory(path, ignored)) return;
  std::filesystem::path const above =
      path.has_filename() ? path.parent_path() : path.parent_path().parent_path();
  create_folders_to(above, wanted);
  if (::mkdir(path.c_str(), 0777) != 0) {
    int const code = errno;
    if (code != EEXIST || !std::filesystem::is_directory(path, ignored)) {
      throw folder_error(wanted, path, code);
    }
  }
  sync_folder(above.empty() ? "." : above);
}

}  // namespace frugal::detail

namespace frugal {

FRUGAL_INLINE std::vector<std::filesystem::path> entries_of(std::filesystem::path const& folder) {
  std::vector<std::filesystem::path> entries;
  std::error_code failure;
  do {
    entries.clear();
    std::filesystem::directory_iterator each(folder, failure);
    for (; !failure && each != std::filesystem::directory_iterator(); each.increment(failure)) {
      entries.push_back(each->path());
    }
  } while (failure == std::errc::interrupted);
  if (failure == std::errc::no_such_file_or_directory) return {};
  if (failure) throw detail::io_error("readdir", folder, failure.value());
  detail::put_in_order(entries, [](std::filesystem::path const& a, std::filesystem::path const& b) {
    return a < b;
  });
  return entries;
}

FRUGAL_INLINE void remove_tree(std::filesystem::path const& path) {
  std::error_code failure;
  do {
    std::filesystem::remove_all(path, failure);
  } while (failure == std::errc::interrupted);
  if (failure) throw detail::io_error("unlink", path, failure.value());
}

}  // namespace frugal
