// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/base/folder.hpp>
#include <frugal/base/hash.hpp>
#include <frugal/data/little_endian.hpp>
#include <frugal/data/sample_set.hpp>
#include <frugal/data/shards/damage.hpp>
#include <frugal/data/shards/record_file.hpp>
#include <frugal/data/shards/shard_list.hpp>
#include <frugal/error.hpp>
#include <frugal/inline.hpp>

#include <algorithm>
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
  FRUGAL_INLINE std::span<std::byte const> get(std::uint64_t index, std::size_t field = 0) const {
    Place const at = place(index);
    return files_[at.shard]->get(at.record, field);
  }

  FRUGAL_INLINE std::string name(std::uint64_t index) const {
    Place const at = place(index);
    return files_[at.shard]->name() + ", record " + std::to_string(at.record);
  }

  /// Changes with the order and the content of the shards. Reads those that have no hashes.
  FRUGAL_INLINE std::string identity() const {
    std::vector<std::byte> hashes;
    for (auto const& file : files_) detail::append_le(hashes, file->hash());
    return "frugal records " + hex_of(Hash::of(hashes));
  }

  /// What OnDamage::Skip left out.
  DamageLog const& damage() const noexcept { return damage_; }

  /// Records of each shard: what an order by shards needs.
  FRUGAL_INLINE std::vector<std::uint64_t> shard_sizes() const {
    std::vector<std::uint64_t> sizes;
    for (auto const& file : files_) sizes.push_back(file->size());
    return sizes;
  }

  std::shared_ptr<RecordFile const> const& file(std::size_t shard) const { return files_[shard]; }

  FRUGAL_INLINE Place place(std::uint64_t index) const {
    if (index >= size()) detail::require_sample(index, size(), folder_.string());
    if (uniform_ != 0) return {static_cast<std::size_t>(index / uniform_), index % uniform_};
    auto const after = std::upper_bound(starts_.begin(), starts_.end(), index);
    auto const shard = static_cast<std::size_t>(after - starts_.begin()) - 1;
    return {shard, index - starts_[shard]};
  }

 private:
  FRUGAL_INLINE void open(std::filesystem::path const& path, std::optional<std::uint64_t> hash) {
    open_or_skip(reading_.on_damage, damage_, path.string(), [&] {
      auto file = std::make_shared<RecordFile const>(path, reading_.verify);
      if (hash && file->hash() != *hash) {
        throw DataError({.what = "the shard is not the one that was written",
                         .where = path.string(),
                         .why = "its hash is " + hex_of(file->hash()) + ", and shards.json has " +
                                hex_of(*hash),
                         .fix = "Fetch the folder again, or write it again."});
      }
      if (!files_.empty() && !(file->layout() == layout())) {
        throw DataError({.what = "the shard has other records than the first one",
                         .where = path.string(),
                         .why = "they are " + file->layout().text() + ", and those of " +
                                files_.front()->name() + " are " + layout().text(),
                         .fix = "Keep records of different layouts in folders of their own."});
      }
      starts_.push_back(starts_.back() + file->size());
      files_.push_back(std::move(file));
    });
  }

  std::filesystem::path folder_;
  RecordReading reading_;
  DamageLog damage_;
  std::vector<std::shared_ptr<RecordFile const>> files_;
  std::vector<std::uint64_t> starts_{0};  ///< first index of each shard, and size()
  std::uint64_t uniform_ = 0;             ///< records of every shard but the last; 0: they differ
};

}  // namespace frugal
