// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/random.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <frugal/base/file.hpp>
#include <frugal/base/folder.hpp>
#include <frugal/base/hash.hpp>
#include <frugal/base/io_error.hpp>
#include <frugal/data/cache/cache_folder.hpp>
#include <frugal/data/shards/new_file.hpp>
#include <frugal/data/shards/shard_list.hpp>
#include <frugal/error.hpp>
#include <frugal/inline.hpp>

namespace frugal::detail {

/// The folder of one key in a folder of caches: key.txt, and record shards. It is written under
/// another name, and gets its own when it is complete. As with every cache, a lock says that it is
/// used, and remove_unused_keys() removes those without one.
class TeacherCacheFolder {
 public:
  /// Creates the folder of all caches. StoreError if that fails; DataError if the folder of this
  /// key has another one of the same hash.
  FRUGAL_INLINE TeacherCacheFolder(std::filesystem::path const& all, std::string key)
      : key_(std::move(key)), path_(all / hex_of(Hash::of(std::as_bytes(std::span(key_))))) {
    create_folders(all);
    std::error_code ignored;
    if (!std::filesystem::exists(path_ / ShardList::file_name, ignored)) return;
    lock_ = std::make_shared<CacheFolderLock>(CacheFolderLock::shared(path_));
    complete_ = std::filesystem::exists(path_ / ShardList::file_name, ignored);
    if (complete_) require_key();
  }

  bool complete() const { return complete_; }
  std::filesystem::path const& path() const { return path_; }

  /// `write(folder)` writes the shards. If another process has published the same key meanwhile,
  /// its files are used.
  template <class Write>
  void fill(Write&& write) {
    remove_abandoned();
    std::filesystem::path const partial = partial_path();
    lock_ = std::make_shared<CacheFolderLock>(CacheFolderLock::shared(partial));
    try {
      NewFile file(partial / "key.txt");
      file.write(std::as_bytes(std::span(key_)));
      file.publish();
      write(partial);
      publish(partial);
    } catch (...) {
      lock_.reset();
      std::error_code ignored;
      std::filesystem::remove_all(partial, ignored);
      throw;
    }
    complete_ = true;
    require_key();
  }

 private:
  static constexpr char const* partial_suffix_of_folders = ".filling";

  FRUGAL_INLINE void publish(std::filesystem::path const& partial) {
    std::error_code ignored;
    if (std::filesystem::is_empty(path_, ignored)) std::filesystem::remove(path_, ignored);
    if (rename_to_free(partial, path_)) {  // the lock is on the folder, not on its name
      sync_folder(path_.parent_path());
      return;
    }
    lock_ = std::make_shared<CacheFolderLock>(CacheFolderLock::shared(path_));
    remove_tree(partial);
  }

  FRUGAL_INLINE std::filesystem::path partial_path() const {
    std::uint64_t drawn = 0;
    if (::getrandom(&drawn, sizeof drawn, 0) != sizeof drawn) {
      throw io_error("getrandom", path_, errno);
    }
    return path_.string() + "-" + hex_of(drawn) + partial_suffix_of_folders;
  }

  /// What killed processes have left of this key: folders without a lock.
  FRUGAL_INLINE void remove_abandoned() const {
    std::string const begin = path_.filename().string() + "-";
    for (auto const& each : entries_of(path_.parent_path())) {
      std::string const name = each.filename().string();
      if (!name.starts_with(begin) || !name.ends_with(partial_suffix_of_folders)) continue;
      if (auto const alone = CacheFolderLock::alone(each)) remove_tree(each);
    }
  }

  FRUGAL_INLINE void require_key() const {
    File file = File::open(path_ / "key.txt");
    std::vector<std::byte> bytes(file.size());
    bytes.resize(file.read(bytes));
    if (std::string(reinterpret_cast<char const*>(bytes.data()), bytes.size()) == key_) return;
    throw DataError({.what = "the cache belongs to something else",
                     .where = path_.string(),
                     .why = "its key is not that of this set and teacher, although both have one "
                            "hash",
                     .fix = "Remove that folder, or set another TeacherCacheSettings::folder."});
  }

  std::string key_;
  std::filesystem::path path_;
  std::shared_ptr<CacheFolderLock> lock_;  ///< shared by copies
  bool complete_ = false;
};

}  // namespace frugal::detail
