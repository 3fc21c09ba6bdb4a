// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/base/hash.hpp>
#include <frugal/base/json_text.hpp>
#include <frugal/base/mapped_file.hpp>
#include <frugal/checkpoint/safetensors_writer.hpp>
#include <frugal/checkpoint/tensor_view.hpp>
#include <frugal/data/little_endian.hpp>
#include <frugal/data/shards/new_file.hpp>
#include <frugal/data/shards/record_layout.hpp>
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

/// Writes one file of records, which RecordFile reads. Each tensor goes to a temporary file, and
/// close() makes the file of them under another name: a crash never leaves half of a file under its
/// own. A writer that is destroyed removes what is temporary.
///
/// Cost    memory: 64 KiB for each tensor. Every byte is written twice.
/// Errors  StoreError: the file exists, or a call fails. DataError for a record that does not have
///         the fields of the layout. SettingsError for a block of no bytes, or of more than 2^30.
class RecordWriter {
 public:
  /// What was written.
  struct Written {
    std::uint64_t records = 0;
    std::uint64_t bytes = 0;  ///< of the whole file
    std::uint64_t hash = 0;   ///< RecordFile::hash()
  };

  explicit RecordWriter(std::filesystem::path path, RecordLayout layout = {},
                        std::uint64_t block_bytes = 1U << 16)
      : path_(std::move(path)), layout_(std::move(layout)), block_bytes_(block_bytes) {
    if (block_bytes == 0 || block_bytes > detail::most_block) {
      throw SettingsError({.what = "a block of " + std::to_string(block_bytes) + " bytes",
                           .where = "RecordWriter",
                           .why = "a block has 1 to 2^30 bytes",
                           .fix = "Leave it at 65536, unless a measurement says otherwise."});
    }
    for (RecordField const& field : layout_.fields()) columns_.emplace_back(field, path_);
    if (layout_.fixed()) return;
    columns_.emplace_back(RecordField{.name = std::string(detail::record_bytes_name)}, path_);
    columns_.emplace_back(
        RecordField{.name = std::string(detail::record_offsets_name), .dtype = Dtype::i64}, path_);
    add_offset();
  }

  /// Adds a record of the layout: the bytes of each field.
  FRUGAL_INLINE void add(std::span<std::span<std::byte const> const> fields) {
    require_fields(fields);
    for (std::size_t k = 0; k < fields.size(); ++k) {
      columns_[k].add(fields[k], layout_.fixed() ? 1 : fields[k].size());
      data_bytes_ += fields[k].size();
    }
    ++records_;
    if (!layout_.fixed()) add_offset();
  }

  std::uint64_t records() const noexcept { return records_; }
  std::uint64_t data_bytes() const noexcept { return data_bytes_; }

  /// Writes the file, waits until everything is on disk, and gives it its name.
  FRUGAL_INLINE Written close() {
    std::vector<MappedFile> files;
    std::vector<TensorView> tensors;
    std::vector<std::uint64_t> hashes;
    std::string about = R"({"format":"frugal records","version":)" +
                        std::to_string(detail::record_version) + R"(,"block_bytes":)" +
                        std::to_string(block_bytes_) + R"(,"fields":[)";
    for (Column& column : columns_) {
      std::span<std::byte const> const bytes = files.emplace_back(column.written()).bytes();
      column.field.shape.insert(column.field.shape.begin(), column.rows);
      tensors.push_back({.name = column.field.name,
                         .dtype = column.field.dtype,
                         .shape = column.field.shape,
                         .bytes = bytes});
      for (std::size_t at = 0; at < bytes.size(); at += block_bytes_) {
        hashes.push_back(Hash::of(bytes.subspan(at, std::min(block_bytes_, bytes.size() - at))));
      }
      if (about.back() != '[') about += ',';
      detail::append_json(about, column.field.name);
    }
    hashes.push_back(0);  // of the header, which needs to know of it
    std::uint64_t const shape[] = {hashes.size()};
    auto const table = std::as_bytes(std::span(hashes));
    tensors.push_back(
        {.name = detail::record_hashes_name, .dtype = Dtype::u64, .shape = shape, .bytes = table});
    SafetensorsWriter const writer(
        tensors, {{std::string(detail::record_metadata_key), about + "]}"}}, path_.string());
    hashes.back() = detail::record_file_hash(std::as_bytes(std::span(writer.header())), table);
    detail::NewFile file(path_);
    writer.write(file);
    file.publish();
    columns_.clear();
    return {.records = records_, .bytes = writer.size(), .hash = hashes.back()};
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
    FRUGAL_INLINE MappedFile written() {
      flush();
      return MappedFile(file.partial());
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

  FRUGAL_INLINE void add_offset() {
    auto const offset = static_cast<std::int64_t>(data_bytes_);
    columns_.back().add(std::as_bytes(std::span(&offset, 1)), 1);
  }

  FRUGAL_INLINE void require_fields(std::span<std::span<std::byte const> const> fields) const {
    auto const& wanted = layout_.fields();
    std::string sizes;
    bool fits = fields.size() == (layout_.fixed() ? wanted.size() : 1);
    for (std::size_t k = 0; fits && layout_.fixed() && k < fields.size(); ++k) {
      fits = fields[k].size() == wanted[k].bytes;
    }
    if (fits) return;
    for (auto const& field : fields) {
      sizes += (sizes.empty() ? "" : ", ") + std::to_string(field.size());
    }
    throw DataError(
        {.what = "the record has other fields than the others",
         .where = path_.string() + ", record " + std::to_string(records_),
         .why = "it has fields of " + sizes + " bytes, and a record is " + layout_.text(),
         .fix = "Give every record the same tensors, or write records of any bytes: "
                "RecordWriter without a layout."});
  }

  std::filesystem::path path_;
  RecordLayout layout_;
  std::uint64_t block_bytes_;
  std::deque<Column> columns_;
  std::uint64_t records_ = 0;
  std::uint64_t data_bytes_ = 0;
};

}  // namespace frugal
