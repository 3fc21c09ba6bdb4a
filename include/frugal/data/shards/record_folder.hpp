// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/base/folder.hpp>
#include <frugal/core/source/sample_set.hpp>
#include <frugal/data/little_endian.hpp>
#include <frugal/data/shards/damage.hpp>
#include <frugal/data/shards/record_file.hpp>
#include <frugal/data/shards/shard_list.hpp>
#include <frugal/error.hpp>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <vector>

namespace frugal {

/// How shards are read.
struct RecordReading {
  OnDamage on_damage = OnDamage::Fail;  ///< for shards that are missing, cut off or damaged
  Verify verify = Verify::FirstTouch;   ///< with AtOpen, Skip finds damaged blocks as well
};

/// The records of a folder of shards, or of one file: a SampleSet of the bytes of their first field.
/// Copies share the mapped files.
///
/// Errors  DataError for a shard that is missing, not the one that was written, or does not have
///         the layout of the others, and those of RecordFile. With OnDamage::Skip such a shard is
///         left out, counted and named in damage(): the set is smaller then. A block that is found
///         damaged later is a DataError of get() in either case: size() does not change under a
///         run. IoError for a shard that cannot be opened now; DataError for an index of size() or
///         more.
class RecordFolder {
 public:
  /// Where a record is.
  struct Place {
    std::size_t shard = 0;
    std::uint64_t record = 0;  ///< in the shard
  };

  explicit RecordFolder(std::filesystem::path const& path, RecordReading reading = {})
      : folder_(path), reading_(reading) {
    std::error_code ignored;
    if (std::filesystem::is_directory(path, ignored)) {
      std::optional<ShardList> list;
      if (open_or_skip(reading_.on_damage, damage_, (path / ShardList::file_name).string(),
                       [&] { list = ShardList::read(path); })) {
        for (ShardList::Shard const& shard : list->shards) open(path / shard.name, shard.hash);
      } else {
        for (auto const& each : entries_of(path)) {
          if (each.extension() == detail::shard_suffix) open(each, std::nullopt);
        }
      }
    } else {
      open(path, std::nullopt);
    }
    if (files_.empty()) {
      throw EmptySourceError({.what = "there is no shard to read",
                              .where = path.string(),
                              .why = damage_.text(),
                              .fix = "Give a folder that ShardWriter finished."});
    }
    uniform_ = files_.front()->size();
    for (std::size_t i = 0; i + 1 < files_.size(); ++i) {
      if (files_[i]->size() != uniform_) uniform_ = 0;
    }
    if (files_.back()->size() > uniform_) uniform_ = 0;
  }

  std::uint64_t size() const noexcept { return starts_.back(); }
  RecordLayout const& layout() const noexcept { return files_.front()->layout(); }

  /// The bytes of a field of a record below size(), as long as a copy of this object lives.
  std::span<std::byte const> get(std::uint64_t index, std::size_t field = 0) const;

  std::string name(std::uint64_t index) const;

  /// Changes with the order and the content of the shards. Reads those that have no hashes.
  std::string identity() const;

  /// What OnDamage::Skip left out.
  DamageLog const& damage() const noexcept { return damage_; }

  /// Records of each shard: what an order by shards needs.
  std::vector<std::uint64_t> shard_sizes() const;

  std::shared_ptr<RecordFile const> const& file(std::size_t shard) const { return files_[shard]; }

  Place place(std::uint64_t index) const;

 private:
  void open(std::filesystem::path const& path, std::optional<std::uint64_t> hash);

  std::filesystem::path folder_;
  RecordReading reading_;
  DamageLog damage_;
  std::vector<std::shared_ptr<RecordFile const>> files_;
  std::vector<std::uint64_t> starts_{0};  ///< first index of each shard, and size()
  std::uint64_t uniform_ = 0;             ///< records of every shard but the last; 0: they differ
};

}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/data/shards/record_folder.ipp>
#endif
