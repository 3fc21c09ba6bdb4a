// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/base/descriptor.hpp>

#include <fcntl.h>

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
  static CacheFolderLock shared(std::filesystem::path const& path);

  /// The lock of one who removes it; nothing if somebody uses the folder, or if it is none.
  static std::optional<CacheFolderLock> alone(std::filesystem::path const& path);

 private:
  explicit CacheFolderLock(int descriptor) : descriptor_(descriptor) {}

  static int open(std::filesystem::path const& path);

  /// Whether the folder of that name is still the one that is locked.
  bool is_at(std::filesystem::path const& path) const;

  Descriptor descriptor_;
};

}  // namespace frugal::detail

#ifndef FRUGAL_COMPILED
#include <frugal/data/cache/cache_folder.ipp>
#endif
