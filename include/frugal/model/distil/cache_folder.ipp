// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/model/distil/cache_folder.hpp>

#include <frugal/base/file.hpp>
#include <frugal/base/folder.hpp>
#include <frugal/base/hash.hpp>
#include <frugal/base/io_error.hpp>
#include <frugal/data/shards/record_layout.hpp>
#include <frugal/error.hpp>
#include <frugal/inline.hpp>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace frugal::detail {

FRUGAL_INLINE TeacherCacheFolder::TeacherCacheFolder(std::filesystem::path const& all,
                                                     std::string key)
    : key_(std::move(key)), path_(all / hex_of(Hash::of(std::as_bytes(std::span(key_))))) {
  create_folders(all);
  std::error_code ignored;
  if (!std::filesystem::exists(path_ / ShardList::file_name, ignored)) return;
  lock_ = std::make_shared<CacheFolderLock>(CacheFolderLock::shared(path_));
  complete_ = std::filesystem::exists(path_ / ShardList::file_name, ignored);
  if (complete_) require_key();
}

FRUGAL_INLINE void TeacherCacheFolder::publish(std::filesystem::path const& partial) {
  std::error_code ignored;
  if (std::filesystem::is_empty(path_, ignored)) std::filesystem::remove(path_, ignored);
  if (rename_to_free(partial, path_)) {  // the lock is on the folder, not on its name
    sync_folder(path_.parent_path());
    return;
  }
  lock_ = std::make_shared<CacheFolderLock>(CacheFolderLock::shared(path_));
  remove_tree(partial);
}

FRUGAL_INLINE std::filesystem::path TeacherCacheFolder::partial_path() const {
  std::uint64_t drawn = 0;
  if (::getrandom(&drawn, sizeof drawn, 0) != sizeof drawn) {
    throw io_error("getrandom", path_, errno);
  }
  return path_.string() + "-" + hex_of(drawn) + partial_suffix_of_folders;
}

FRUGAL_INLINE void TeacherCacheFolder::remove_abandoned() const {
  std::string const begin = path_.filename().string() + "-";
  for (auto const& each : entries_of(path_.parent_path())) {
    std::string const name = each.filename().string();
    if (!name.starts_with(begin) || !name.ends_with(partial_suffix_of_folders)) continue;
    if (auto const alone = CacheFolderLock::alone(each)) remove_tree(each);
  }
}

FRUGAL_INLINE void TeacherCacheFolder::require_key() const {
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

}  // namespace frugal::detail
