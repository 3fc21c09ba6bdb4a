// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/base/folder.hpp>
#include <frugal/checkpoint/safetensors_writer.hpp>
#include <frugal/data/little_endian.hpp>
#include <frugal/data/shards/new_file.hpp>
#include <frugal/data/shards/record_layout.hpp>
#include <frugal/error.hpp>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace frugal {

/// How records are cut into shards. A shard has at least one record.
struct Sharding {
  std::uint64_t records_per_shard = 0;           ///< at most; 0: any number
  std::uint64_t bytes_per_shard = 256ULL << 20;  ///< of records, at most; 0: any number
  std::uint64_t block_bytes = 1ULL << 16;        ///< bytes of a tensor under one hash
};

/// The bytes of each field of a record.
using RecordBytes = std::span<std::span<std::byte const> const>;

/// Writes a folder of shards of bytes, whatever they mean; ShardWriter writes samples. Each tensor
/// goes to a temporary file, and the shard is made of them when it is full.
///
/// After a crash the shards that were complete are there, and no shards.json: RecordFolder refuses
/// the folder, or takes them with OnDamage::Skip.
/// Cost    memory: 64 KiB for each tensor. Every byte is written twice.
/// Errors  StoreError if the folder has shards already, or a call fails. DataError for a record that
///         does not have the fields of the layout; it is left out. SettingsError for a block of no
///         bytes, or of more than 2^30.
class ShardFiles {
 public:
  /// Creates the folder if it does not exist. A layout without fields: records of any bytes.
  explicit ShardFiles(std::filesystem::path folder, Sharding sharding = {},
                      RecordLayout layout = {})
      : folder_(std::move(folder)), sharding_(sharding), layout_(std::move(layout)) {
    if (sharding.block_bytes == 0 || sharding.block_bytes > detail::most_block) {
      throw SettingsError({.what = "a block of " + std::to_string(sharding.block_bytes) + " bytes",
                           .where = "Sharding::block_bytes",
                           .why = "a block has 1 to 2^30 bytes",
                           .fix = "Leave it at 65536, unless a measurement says otherwise."});
    }
    create_folders(folder_);
    for (auto const& path : entries_of(folder_)) {
      if (path.extension() != detail::shard_suffix && path.filename() != ShardList::file_name) {
        continue;
      }
      throw StoreError({.what = "the folder has shards already",
                        .where = path.string(),
                        .why = "written data is never replaced",
                        .fix = "Write to an empty folder, or remove this one."});
    }
  }

  /// For a layout that is known only after the first sample; before the first add().
  void set_layout(RecordLayout layout) { layout_ = std::move(layout); }
  RecordLayout const& layout() const noexcept { return layout_; }

  /// Adds a record of the layout; without one, of one field of any bytes.
  void add(RecordBytes fields);

  /// Records so far.
  std::uint64_t records() const noexcept { return records_; }

  /// Ends the last shard and writes shards.json. EmptySourceError without a record.
  ShardList close();

 private:
  /// The rows of one tensor, in a file of their own: where they begin in the shard is known only
  /// when all are there.
  struct Column {
    Column(RecordField of, std::filesystem::path const& path) : field(std::move(of)), file(path) {}

    void add(std::span<std::byte const> bytes, std::uint64_t more);
    void flush() {
      file.write(pending);
      pending.clear();
    }

    static constexpr std::size_t most_pending = std::size_t{64} << 10;

    RecordField field;
    detail::NewFile file;  ///< never published
    std::vector<std::byte> pending;
    std::uint64_t rows = 0;
  };

  bool is_full(std::uint64_t more) const;

  void begin_shard();

  void add_offset();

  void end_shard();

  void require_fields(RecordBytes fields) const;

  std::filesystem::path folder_;
  Sharding sharding_;
  RecordLayout layout_;
  ShardList::Shard shard_;  ///< the one that is being written, if it has records; bytes: of records
  std::deque<Column> columns_;  ///< its tensors
  ShardList list_;
  std::uint64_t records_ = 0;
};

}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/data/shards/shard_files.ipp>
#endif
