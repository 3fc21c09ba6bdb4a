// SPDX-License-Identifier: Apache-2.0
// needs: avro
#pragma once

#include <frugal/data/avro/codec.hpp>
#include <frugal/data/avro/encoder.hpp>
#include <frugal/data/avro/schema.hpp>
#include <frugal/data/avro/units.hpp>
#include <frugal/data/shards/new_file.hpp>
#include <frugal/data/tables/files.hpp>
#include <frugal/data/tables/row.hpp>
#include <frugal/error.hpp>

#include <sys/random.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <utility>

namespace frugal {

/// How an Avro file is written.
struct AvroWriterSettings {
  AvroCodec codec = AvroCodec::deflate;
  std::uint64_t block_bytes = 64U << 10;  ///< of rows before compression; a block ends with its row
};

/// Writes rows as an Avro container file of a schema in JSON. A row has the leaves of the schema as
/// its columns, by name: "box.width" for a field of a record within the record. The file has its
/// name once close() has returned; without close() nothing is left of it.
///
/// Errors  DataError for an invalid schema, and for a cell that its column cannot hold;
///         SettingsError for a row that lacks a column, and for a column of decimals; StoreError if `path` exists, or the disk
///         does not take the file.
class AvroWriter {
 public:
  AvroWriter(std::filesystem::path const& path, std::string const& schema,
             AvroWriterSettings settings = {})
      : settings_(settings), where_(free(path)), type_(checked(schema, where_)), file_(path) {
    sync_.resize(16);
    // Random, so that no file's rows hold another's marker.
    if (::getrandom(sync_.data(), sync_.size(), 0) != static_cast<ssize_t>(sync_.size())) {
      throw StoreError({.what = "no random bytes for the sync marker",
                        .where = where_,
                        .why = "getrandom failed",
                        .fix = "Try again."});
    }
    detail::AvroEncoder header;
    header.raw("Obj\1");
    header.integer(2);
    header.bytes("avro.schema");
    header.bytes(schema);
    header.bytes("avro.codec");
    header.bytes(detail::codec_name(settings_.codec));
    header.integer(0);
    header.raw(sync_);
    put(header.text());
  }

  void add(Row const& row) {
    std::size_t const before = block_.text().size();
    try {
      block_.record(type_, row, "", where_ + ", row " + std::to_string(written_ + rows_));
    } catch (...) {
      block_.cut(before);  // the row is not in the file
      throw;
    }
    ++rows_;
    if (block_.text().size() >= settings_.block_bytes) flush();
  }

  /// Writes what is left, and makes the file durable under its name.
  void close() {
    if (rows_ > 0) flush();
    file_.publish();
  }

 private:
  static std::string free(std::filesystem::path const& path) {
    detail::require_free(path);
    return path.string();
  }

  static AvroType checked(std::string const& schema, std::string const& where) {
    AvroType type = avro_schema(schema, where);
    detail::AvroUnits const units(schema);
    for (std::string const& column : units.decimals()) units.require_no_decimal(column, where);
    return type;
  }

  void flush() {
    std::string const packed = detail::compressed(settings_.codec, block_.text(), where_);
    detail::AvroEncoder head;
    head.integer(static_cast<std::int64_t>(rows_));
    head.integer(static_cast<std::int64_t>(packed.size()));
    put(head.text());
    put(packed);
    put(sync_);
    written_ += rows_;
    rows_ = 0;
    block_.cut(0);
  }

  void put(std::string const& bytes) { file_.write(std::as_bytes(std::span(bytes))); }

  AvroWriterSettings settings_;
  std::string where_;
  AvroType type_;
  detail::NewFile file_;
  std::string sync_;
  detail::AvroEncoder block_;
  std::uint64_t rows_ = 0;     ///< in the block
  std::uint64_t written_ = 0;  ///< in blocks before it
};

}  // namespace frugal
