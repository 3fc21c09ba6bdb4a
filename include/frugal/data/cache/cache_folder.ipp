// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/data/cache/cache_folder.hpp>

#include <frugal/base/folder.hpp>
#include <frugal/base/io_error.hpp>
#include <frugal/inline.hpp>

#include <sys/file.h>
#include <sys/stat.h>

#include <cerrno>

namespace frugal::detail {

FRUGAL_INLINE CacheFolderLock CacheFolderLock::shared(std::filesystem::path const& path) {
  for (;;) {
    create_folders(path);
    CacheFolderLock lock(open(path));
    if (!lock.descriptor_ && errno == ENOENT) continue;  // was removed meanwhile
    if (!lock.descriptor_) throw io_error("open", path, errno);
    while (::flock(lock.descriptor_.get(), LOCK_SH) != 0 && errno == EINTR) {
    }
    if (lock.is_at(path)) return lock;
  }
}

FRUGAL_INLINE std::optional<CacheFolderLock> CacheFolderLock::alone(
    std::filesystem::path const& path) {
  CacheFolderLock lock(open(path));
  if (!lock.descriptor_ || ::flock(lock.descriptor_.get(), LOCK_EX | LOCK_NB) != 0 ||
      !lock.is_at(path)) {
    return std::nullopt;
  }
  return lock;
}

FRUGAL_INLINE int CacheFolderLock::open(std::filesystem::path const& path) {
  int descriptor = -1;
  do {
    descriptor = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  } while (descriptor < 0 && errno == EINTR);
  return descriptor;
}

FRUGAL_INLINE bool CacheFolderLock::is_at(std::filesystem::path const& path) const {
  struct stat mine{}, named{};
  return ::fstat(descriptor_.get(), &mine) == 0 && ::stat(path.c_str(), &named) == 0 &&
         mine.st_dev == named.st_dev && mine.st_ino == named.st_ino;
}

}  // namespace frugal::detail
