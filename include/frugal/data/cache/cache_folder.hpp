// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/base/descriptor.hpp>

#include <fcntl.h>
#include <sys/random.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string_view>

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

namespace frugal {

/// What remove_unused_keys did.
struct RemovedKeys {
  std::uint64_t removed = 0;  ///< keys
  std::uint64_t bytes = 0;    ///< of them
  std::uint64_t in_use = 0;   ///< keys that stay
};

namespace detail {

inline constexpr std::string_view removed_suffix = ".removed";

/// Whether a folder is that of a key: it has the key's text, and the hash of that as its name.
bool is_key_folder(std::filesystem::path const& folder);

/// Renames first: then half of a key is never found, and a crash leaves what the next call
/// knows.
void remove_key(std::filesystem::path const& folder);

}  // namespace detail

/// Removes the keys of a cache folder (CacheSettings::folder) that are unused: those of earlier
/// versions, settings and data. A key is in use as long as a Cached or an Offline of it exists, in
/// this or in another process of any machine that shares the folder's locks.
///
///     auto set = cached(rows, Decode{}, {.folder = "cache"});
///     remove_unused_keys("cache");  // set's key stays
///
/// Whatever else lies in the folder stays.
/// Errors  StoreError if a key cannot be read or removed.
RemovedKeys remove_unused_keys(std::filesystem::path const& folder);

}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/data/cache/cache_folder.ipp>
#endif
