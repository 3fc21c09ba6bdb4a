// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/base/file.hpp>
#include <frugal/base/folder.hpp>
#include <frugal/base/hash.hpp>
#include <frugal/data/shards/damage.hpp>
#include <frugal/data/shards/open_files.hpp>
#include <frugal/data/shards/tar_index.hpp>
#include <frugal/data/shards/tar_scan.hpp>
#include <frugal/error.hpp>

#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <system_error>

// Needs libarchive: FRUGAL_ARCHIVE=ON, and the target frugal::archive.
namespace frugal::detail {

/// Where the index of a tar file is kept: next to it, or in `folder` under a name made of its path.
inline std::filesystem::path index_path(std::filesystem::path const& tar,
                                        std::filesystem::path const& folder) {
  if (folder.empty()) return tar.string() + ".index";
  std::string const path = std::filesystem::absolute(tar).lexically_normal().string();
  std::uint64_t const hash = Hash::of(std::as_bytes(std::span(path)));
  return folder / (tar.filename().string() + "-" + hex_of(hash) + ".index");
}

/// The index that is kept, if it is sound and the tar file still has that stamp.
inline std::optional<TarIndex> load_index(std::filesystem::path const& path,
                                          TarStamp const& stamp) {
  try {
    auto const file = std::make_shared<MappedFile const>(path, MappedFile::Access::normal);
    TarIndex index = TarIndex::parse(file->bytes(), path.string(), file);
    if (index.stamp() == stamp) return index;
  } catch (StoreError const&) {  // none is there
  } catch (DataError const&) {   // damaged, or of another version
  }
  return std::nullopt;
}

/// Keeps an index for the next time, if that can be. Another process may do the same: whoever is
/// last wins, and both are right. Not fsynced: a damaged index is made again.
inline void save_index(TarIndex const& index, std::filesystem::path const& path) {
  static std::atomic<unsigned> count{0};
  std::filesystem::path const temporary =
      path.string() + ".tmp-" + std::to_string(::getpid()) + "-" + std::to_string(count++);
  try {
    if (path.has_parent_path()) create_folders(path.parent_path());
    File file = File::create(temporary);
    file.write(index.bytes());
    file.close();
    rename_path(temporary, path);
  } catch (StoreError const&) {  // a folder that is read-only, a full disk: it is only slower
    std::error_code ignored;
    std::filesystem::remove(temporary, ignored);
  }
}

/// The index of a tar file: the one that is kept if `keep`, or a new one.
inline TarIndex tar_index_of(PooledFile const& tar, OnDamage on_damage, DamageLog const& log,
                             bool keep, std::filesystem::path const& folder) {
  std::filesystem::path const path = index_path(tar.path(), folder);
  if (keep) {
    if (auto index = load_index(path, stamp_of(tar))) return *std::move(index);
  }
  ScannedTar scanned = scan_tar(tar, on_damage, log);
  // A damaged file is read again each time, so that its damage is reported each time.
  if (keep && scanned.whole) save_index(scanned.index, path);
  return std::move(scanned.index);
}

}  // namespace frugal::detail
