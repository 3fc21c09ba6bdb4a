// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/random.h>

#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <system_error>

#include <frugal/data/cache/cache_folder.hpp>
#include <frugal/data/shards/new_file.hpp>

namespace frugal::detail {

/// The folder of one key in a folder of caches: key.txt, and record shards. It is written under
/// another name, and gets its own when it is complete. As with every cache, a lock says that it is
/// used, and remove_unused_keys() removes those without one.
class TeacherCacheFolder {
 public:
  /// Creates the folder of all caches. StoreError if that fails; DataError if the folder of this
  /// key has another one of the same hash.
  TeacherCacheFolder(std::filesystem::path const& all, std::string key);

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

  void publish(std::filesystem::path const& partial);

  std::filesystem::path partial_path() const;

  /// What killed processes have left of this key: folders without a lock.
  void remove_abandoned() const;

  void require_key() const;

  std::string key_;
  std::filesystem::path path_;
  std::shared_ptr<CacheFolderLock> lock_;  ///< shared by copies
  bool complete_ = false;
};

}  // namespace frugal::detail

#ifndef FRUGAL_COMPILED
#include <frugal/model/distil/cache_folder.ipp>
#endif
