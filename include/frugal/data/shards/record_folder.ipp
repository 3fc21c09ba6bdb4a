// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/data/shards/record_folder.hpp>

#include <frugal/base/hash.hpp>
#include <frugal/inline.hpp>

#include <algorithm>
#include <utility>

namespace frugal {

FRUGAL_INLINE std::span<std::byte const> RecordFolder::get(std::uint64_t index,
                                                           std::size_t field) const {
  Place const at = place(index);
  return files_[at.shard]->get(at.record, field);
}

FRUGAL_INLINE std::string RecordFolder::name(std::uint64_t index) const {
  Place const at = place(index);
  return files_[at.shard]->name() + ", record " + std::to_string(at.record);
}

FRUGAL_INLINE std::string RecordFolder::identity() const {
  std::vector<std::byte> hashes;
  for (auto const& file : files_) detail::append_le(hashes, file->hash());
  return "frugal records " + hex_of(Hash::of(hashes));
}

FRUGAL_INLINE std::vector<std::uint64_t> RecordFolder::shard_sizes() const {
  std::vector<std::uint64_t> sizes;
  for (auto const& file : files_) sizes.push_back(file->size());
  return sizes;
}

FRUGAL_INLINE RecordFolder::Place RecordFolder::place(std::uint64_t index) const {
  if (index >= size()) detail::require_sample(index, size(), folder_.string());
  if (uniform_ != 0) return {static_cast<std::size_t>(index / uniform_), index % uniform_};
  auto const after = std::upper_bound(starts_.begin(), starts_.end(), index);
  auto const shard = static_cast<std::size_t>(after - starts_.begin()) - 1;
  return {shard, index - starts_[shard]};
}

FRUGAL_INLINE void RecordFolder::open(std::filesystem::path const& path,
                                      std::optional<std::uint64_t> hash) {
  open_or_skip(reading_.on_damage, damage_, path.string(), [&] {
    auto file = std::make_shared<RecordFile const>(path, reading_.verify);
    if (hash && file->hash() != *hash) {
      throw DataError(
          {.what = "the shard is not the one that was written",
           .where = path.string(),
           .why = "its hash is " + hex_of(file->hash()) + ", and shards.json has " + hex_of(*hash),
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

}  // namespace frugal
