// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/data/cache/cache_folder.hpp>

#include <frugal/base/file.hpp>
#include <frugal/base/folder.hpp>
#include <frugal/base/hash.hpp>
#include <frugal/base/io_error.hpp>
#include <frugal/inline.hpp>

#include <sys/file.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstddef>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

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

FRUGAL_INLINE bool is_key_folder(std::filesystem::path const& folder) {
  std::error_code ignored;
  if (!std::filesystem::is_directory(std::filesystem::symlink_status(folder, ignored)))
    return false;
  try {
    File file = File::open(folder / "key.txt");
    std::vector<std::byte> key(file.size());
    key.resize(file.read(key));
    return folder.filename() == hex_of(Hash::of(key));
  } catch (IoError const& error) {
    if (error.code != ENOENT) throw;
    return false;  // another folder; or another call has removed it
  }
}

FRUGAL_INLINE void remove_key(std::filesystem::path const& folder) {
  std::uint64_t drawn = 0;
  if (::getrandom(&drawn, sizeof drawn, 0) != sizeof drawn) {
    throw io_error("getrandom", folder, errno);
  }
  auto aside = folder;
  aside += "-" + hex_of(drawn);
  aside += removed_suffix;
  rename_path(folder, aside);
  remove_tree(aside);
}

}  // namespace frugal::detail

namespace frugal {

FRUGAL_INLINE RemovedKeys remove_unused_keys(std::filesystem::path const& folder) {
  RemovedKeys result;
  for (auto const& path : entries_of(folder)) {
    // A call that did not come to its end: KEY-0123456789abcdef.removed
    if (std::string const name = path.filename().string();
        name.size() == 33 + detail::removed_suffix.size() && name[16] == '-' &&
        name.ends_with(detail::removed_suffix)) {
      remove_tree(path);
      continue;
    }
    if (!detail::is_key_folder(path)) continue;
    auto const lock = detail::CacheFolderLock::alone(path);
    if (!lock) {
      ++result.in_use;
      continue;
    }
    std::uint64_t bytes = 0;
    for (auto const& file : entries_of(path)) bytes += std::filesystem::file_size(file);
    detail::remove_key(path);
    ++result.removed;
    result.bytes += bytes;
  }
  return result;
}

}  // namespace frugal
