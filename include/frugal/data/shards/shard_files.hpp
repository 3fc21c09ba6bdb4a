// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/base/folder.hpp>
#include <frugal/base/hash.hpp>
#include <frugal/base/json_writer.hpp>
#include <frugal/base/mapped_file.hpp>
#include <frugal/checkpoint/safetensors_writer.hpp>
#include <frugal/checkpoint/tensor_view.hpp>
#include <frugal/data/little_endian.hpp>
#include <frugal/data/shards/new_file.hpp>
#include <frugal/data/shards/record_layout.hpp>
#include <frugal/data/shards/shard_list.hpp>
#include <frugal/error.hpp>
#include <frugal/inline.hpp>

#include <algorithm>
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
  FRUGAL_INLINE void add(RecordBytes fields) {
    require_fields(fields);
    std::uint64_t bytes = 0;
    for (auto const& field : fields) bytes += field.size();
    if (shard_.records != 0 && is_full(bytes)) end_shard();
    if (shard_.records == 0) begin_shard();
    for (std::size_t k = 0; k < fields.size(); ++k) {
      columns_[k].add(fields[k], layout_.fixed() ? 1 : bytes);
    }
    shard_.bytes += bytes;
    if (!layout_.fixed()) add_offset();
    ++shard_.records;
    ++records_;
  }

  /// Records so far.
  std::uint64_t records() const noexcept { return records_; }

  /// Ends the last shard and writes shards.json. EmptySourceError without a record.
  FRUGAL_INLINE ShardList close() {
    if (shard_.records != 0) end_shard();
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
  /// The rows of one tensor, in a file of their own: where they begin in the shard is known only
  /// when all are there.
  struct Column {
    Column(RecordField of, std::filesystem::path const& path) : field(std::move(of)), file(path) {}

    FRUGAL_INLINE void add(std::span<std::byte const> bytes, std::uint64_t more) {
      rows += more;
      if (pending.size() + bytes.size() > most_pending) flush();
      if (bytes.size() > most_pending) return file.write(bytes);
      detail::append_bytes(pending, bytes);
    }
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

  FRUGAL_INLINE bool is_full(std::uint64_t more) const {
    return (sharding_.records_per_shard != 0 && shard_.records >= sharding_.records_per_shard) ||
           (sharding_.bytes_per_shard != 0 && shard_.bytes + more > sharding_.bytes_per_shard);
  }

  FRUGAL_INLINE void begin_shard() {
    shard_ = {.name = ShardList::shard_name(list_.shards.size())};
    columns_.clear();
    auto const path = folder_ / shard_.name;
    for (RecordField const& field : layout_.fields()) columns_.emplace_back(field, path);
    if (layout_.fixed()) return;
    columns_.emplace_back(RecordField{.name = std::string(detail::record_bytes_name)}, path);
    columns_.emplace_back(
        RecordField{.name = std::string(detail::record_offsets_name), .dtype = Dtype::i64}, path);
    add_offset();
  }

  FRUGAL_INLINE void add_offset() {
    auto const offset = static_cast<std::int64_t>(shard_.bytes);
    columns_.back().add(std::as_bytes(std::span(&offset, 1)), 1);
  }

  FRUGAL_INLINE void end_shard() {
    std::vector<MappedFile> files;
    std::deque<std::vector<std::uint64_t>> shapes;
    std::vector<TensorView> tensors;
    std::vector<std::uint64_t> hashes;
    detail::JsonWriter about;
    about.object().add("format", "frugal records").add("version", detail::record_version);
    about.add("block_bytes", sharding_.block_bytes).key("fields").array();
    for (Column& column : columns_) {
      column.flush();
      auto const bytes = files.emplace_back(column.file.partial()).bytes();
      auto& shape = shapes.emplace_back(1, column.rows);
      shape.insert(shape.end(), column.field.shape.begin(), column.field.shape.end());
      tensors.push_back(
          {.name = column.field.name, .dtype = column.field.dtype, .shape = shape, .bytes = bytes});
      for (std::size_t at = 0; at < bytes.size(); at += sharding_.block_bytes) {
        hashes.push_back(
            Hash::of(bytes.subspan(at, std::min(sharding_.block_bytes, bytes.size() - at))));
      }
      about.value(column.field.name);
    }
    hashes.push_back(0);  // that of the header, which has their number
    tensors.push_back({.name = detail::record_hashes_name,
                       .dtype = Dtype::u64,
                       .shape = shapes.emplace_back(1, hashes.size()),
                       .bytes = std::as_bytes(std::span(hashes))});
    SafetensorsWriter const writer(
        tensors, {{std::string(detail::record_metadata_key), about.str()}}, shard_.name);
    hashes.back() = detail::record_file_hash(std::as_bytes(std::span(writer.header())),
                                             std::as_bytes(std::span(hashes)));
    detail::NewFile file(folder_ / shard_.name);
    writer.write(file);
    file.publish();
    columns_.clear();
    shard_.bytes = writer.size();
    shard_.hash = hashes.back();
    list_.shards.push_back(std::exchange(shard_, {}));
  }

  FRUGAL_INLINE void require_fields(RecordBytes fields) const {
    auto const size = [](std::span<std::byte const> field) { return field.size(); };
    if (layout_.fixed()
            ? std::ranges::equal(fields, layout_.fields(), {}, size, &RecordField::bytes)
            : fields.size() == 1) {
      return;
    }
    std::string sizes;
    for (auto const& field : fields)
      sizes += (sizes.empty() ? "" : ", ") + std::to_string(size(field));
    throw DataError(
        {.what = "the record does not have the fields of the others",
         .where = folder_.string() + ", record " + std::to_string(records_),
         .why = "it has fields of " + sizes + " bytes, and a record is " + layout_.text(),
         .fix = "Give every record the same tensors, or write records of any bytes: "
                "without a layout."});
  }

  std::filesystem::path folder_;
  Sharding sharding_;
  RecordLayout layout_;
  ShardList::Shard shard_;  ///< the one that is being written, if it has records; bytes: of records
  std::deque<Column> columns_;  ///< its tensors
  ShardList list_;
  std::uint64_t records_ = 0;
};

}  // namespace frugal
