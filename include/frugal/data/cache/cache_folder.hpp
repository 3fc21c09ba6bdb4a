// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/base/descriptor.hpp>
#include <frugal/base/folder.hpp>
#include <frugal/base/io_error.hpp>
#include <frugal/inline.hpp>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <cerrno>
#include <filesystem>
#include <optional>

namespace frugal::detail {

/// A lock on the folder of one key. Those who use the key share it, and so the folder is not
/// removed under them (remove_unused_keys). The system releases it with the process, however that
/// ends.
class CacheFolderLock {
 public:
  /// Makes the folder and shares it. StoreError if it cannot be made. Waits for one who is about to
  /// remove it, and makes it again. Where the file system has no locks there is none.
  FRUGAL_INLINE static CacheFolderLock shared(std::filesystem::path const& path) {
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

  /// The lock of one who removes it; nothing if somebody uses the folder, or if it is none.
  FRUGAL_INLINE static std::optional<CacheFolderLock> alone(std::filesystem::path const& path) {
    CacheFolderLock lock(open(path));
    if (!lock.descriptor_ || ::flock(lock.descriptor_.get(), LOCK_EX | LOCK_NB) != 0 ||
        !lock.is_at(path)) {
      return std::nullopt;
    }
    return lock;
  }

 private:
  explicit CacheFolderLock(int descriptor) : descriptor_(descriptor) {}

  FRUGAL_INLINE static int open(std::filesystem::path const& path) {
    int descriptor = -1;
    do {
      descriptor = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    } while (descriptor < 0 && errno == EINTR);
    return descriptor;
  }

  /// Whether the folder of that name is still the one that is locked.
  FRUGAL_INLINE bool is_at(std::filesystem::path const& path) const {
    struct stat mine{}, named{};
    return ::fstat(descriptor_.get(), &mine) == 0 && ::stat(path.c_str(), &named) == 0 &&
           mine.st_dev == named.st_dev && mine.st_ino == named.st_ino;
  }

  Descriptor descriptor_;
};

}  // namespace frugal::detail
