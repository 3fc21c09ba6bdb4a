// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/base/folder.hpp>
#include <frugal/data/shards/record_layout.hpp>
#include <frugal/data/shards/record_writer.hpp>
#include <frugal/data/shards/shard_list.hpp>
#include <frugal/error.hpp>
#include <frugal/inline.hpp>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <utility>

namespace frugal {

/// How records are cut into shards. A shard has at least one record.
struct Sharding {
  std::uint64_t records_per_shard = 0;           ///< at most; 0: any number
  std::uint64_t bytes_per_shard = 256ULL << 20;  ///< of records, at most; 0: any number
  std::uint64_t block_bytes = 1ULL << 16;        ///< bytes under one hash
};

/// Writes a folder of shards of bytes, whatever they mean; ShardWriter writes samples.
///
/// After a crash the shards that were complete are there, and no shards.json: RecordFolder refuses
/// the folder, or takes them with OnDamage::Skip.
/// Errors  StoreError if the folder has shards already, or a call fails.
class ShardFiles {
 public:
  /// Creates the folder if it does not exist. A layout without fields: records of any bytes.
  explicit ShardFiles(std::filesystem::path folder, Sharding sharding = {},
                      RecordLayout layout = {})
      : folder_(std::move(folder)), sharding_(sharding), layout_(std::move(layout)) {
    create_folders(folder_);
    for (auto const& path : entries_of(folder_)) {
      if (path.extension() != detail::shard_suffix && path.filename() != ShardList::file_name)
        continue;
      throw StoreError({.what = "the folder has shards already",
                        .where = path.string(),
                        .why = "written data is never replaced",
                        .fix = "Write to an empty folder, or remove this one."});
    }
  }

  /// For a layout that is known only after the first sample; before the first add().
  void set_layout(RecordLayout layout) { layout_ = std::move(layout); }
  RecordLayout const& layout() const noexcept { return layout_; }

  /// Adds a record: the bytes of each field of the layout.
  FRUGAL_INLINE void add(std::span<std::span<std::byte const> const> fields) {
    std::uint64_t bytes = 0;
    for (auto const& field : fields) bytes += field.size();
    if (shard_ && is_full(bytes)) end_shard();
    if (!shard_) {
      shard_.emplace(folder_ / ShardList::shard_name(list_.shards.size()), layout_,
                     sharding_.block_bytes);
    }
    shard_->add(fields);
    ++records_;
  }
  /// Adds a record of one field: of any bytes without a layout.
  void add(std::span<std::byte const> bytes) { add(std::span(&bytes, 1)); }

  /// Records so far.
  std::uint64_t records() const noexcept { return records_; }

  /// Ends the last shard and writes shards.json. EmptySourceError without a record.
  FRUGAL_INLINE ShardList close() {
    if (shard_) end_shard();
    if (list_.shards.empty()) {
      throw EmptySourceError({.what = "there is no record to write",
                              .where = folder_.string(),
                              .why = "",
                              .fix = "Add at least one."});
    }
    list_.write(folder_);
    return list_;
  }

 private:
  FRUGAL_INLINE bool is_full(std::uint64_t more) const {
    return (sharding_.records_per_shard != 0 && shard_->records() >= sharding_.records_per_shard) ||
           (sharding_.bytes_per_shard != 0 &&
            shard_->data_bytes() + more > sharding_.bytes_per_shard);
  }

  FRUGAL_INLINE void end_shard() {
    auto const written = shard_->close();
    shard_.reset();
    list_.shards.push_back({.name = ShardList::shard_name(list_.shards.size()),
                            .records = written.records,
                            .bytes = written.bytes,
                            .hash = written.hash});
  }

  std::filesystem::path folder_;
  Sharding sharding_;
  RecordLayout layout_;
  std::optional<RecordWriter> shard_;
  ShardList list_;
  std::uint64_t records_ = 0;
};

}  // namespace frugal
