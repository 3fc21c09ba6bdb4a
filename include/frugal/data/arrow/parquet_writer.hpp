// SPDX-License-Identifier: Apache-2.0
// needs: arrow
#pragma once

#include <frugal/data/arrow/builder.hpp>
#include <frugal/data/shards/new_file.hpp>
#include <frugal/data/tables/files.hpp>
#include <frugal/data/tables/row.hpp>
#include <frugal/error.hpp>

#include <arrow/buffer.h>
#include <arrow/io/interfaces.h>
#include <arrow/memory_pool.h>
#include <arrow/result.h>
#include <arrow/status.h>
#include <arrow/table.h>
#include <arrow/util/compression.h>
#include <parquet/arrow/writer.h>
#include <parquet/properties.h>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace frugal::detail {

/// The output of Arrow: a file that gets its name when it is complete. Arrow takes a status,
/// and no exception: rethrow() throws the StoreError behind one.
class ArrowSink : public ::arrow::io::OutputStream {
 public:
  explicit ArrowSink(std::filesystem::path const& path) : file_(path) {}

  using ::arrow::io::OutputStream::Write;
  ::arrow::Status Write(void const* data, std::int64_t size) override {
    try {
      file_.write({static_cast<std::byte const*>(data), static_cast<std::size_t>(size)});
    } catch (std::exception const& error) {
      failure_ = std::current_exception();
      return ::arrow::Status::IOError(error.what());
    }
    written_ += size;
    return ::arrow::Status::OK();
  }
  ::arrow::Result<std::int64_t> Tell() const override { return written_; }
  ::arrow::Status Close() override {
    closed_ = true;
    return ::arrow::Status::OK();
  }
  bool closed() const override { return closed_; }

  void rethrow() const {
    if (failure_) std::rethrow_exception(failure_);
  }

  /// Makes the file durable under its name.
  void publish() { file_.publish(); }

 private:
  NewFile file_;
  std::int64_t written_ = 0;
  bool closed_ = false;
  std::exception_ptr failure_;
};

}  // namespace frugal::detail

namespace frugal {

/// How a Parquet file is written.
struct ParquetWriterSettings {
  std::uint64_t rows_per_group = 10000;       ///< at most: what a reader decodes at once
  std::uint64_t bytes_per_group = 16U << 20;  ///< at most, decoded; a row above it is a group
  std::string compression = "zstd";           ///< or "none", "snappy", "gzip", "lz4", "brotli"
  std::vector<std::string> binary = {};  ///< columns of std::string that hold bytes, no UTF-8 text
};

namespace detail {

/// SettingsError for an unknown compression, and for groups of 0 rows or bytes.
inline std::shared_ptr<::parquet::WriterProperties> parquet_properties(
    ParquetWriterSettings const& settings, std::string const& where) {
  std::string const& name = settings.compression;
  auto const codec = ::arrow::util::Codec::GetCompressionType(name == "none"  ? "uncompressed"
                                                              : name == "lz4" ? "lz4_raw"
                                                                              : name);
  if (!codec.ok() || !::arrow::util::Codec::IsAvailable(*codec)) {
    throw SettingsError({.what = "there is no compression " + name,
                         .where = where,
                         .why = "",
                         .fix = "Name one of none, snappy, gzip, zstd, lz4 and brotli."});
  }
  if (settings.rows_per_group == 0 || settings.bytes_per_group == 0) {
    throw SettingsError({.what = "groups of 0 rows or bytes",
                         .where = where,
                         .why = "",
                         .fix = "Set rows_per_group and bytes_per_group to 1 or more."});
  }
  return ::parquet::WriterProperties::Builder()
      .compression(*codec)
      ->max_row_group_length(static_cast<std::int64_t>(settings.rows_per_group))
      ->enable_page_checksum()
      ->build();
}

}  // namespace detail

/// Writes rows as a Parquet file, with checksums. The file has its name once close() has returned;
/// without close() nothing is left of it.
///
/// The rows of the first group say what type a column has: int64, double, bool, string or binary,
/// lists of numbers of their type, lists of strings. Holds one group of rows in memory. A group
/// ends before the row with which it would exceed rows_per_group or bytes_per_group: readers hold
/// whole groups, and Arrow reads no column of a group beyond 2 GiB.
///
/// Errors  DataError for a row of other columns, or a cell of another type than its column's; for a
///         column that is null in all rows of the first group. StoreError if `path` exists, or the
///         disk does not take the file. SettingsError for an unknown compression, groups of 0
///         rows or bytes, and a `binary` column that does not exist.
class ParquetWriter {
 public:
  explicit ParquetWriter(std::filesystem::path const& path, ParquetWriterSettings settings = {})
      : settings_(std::move(settings)), where_(path.string()) {
    detail::require_free(path);
    properties_ = detail::parquet_properties(settings_, where_);
    sink_ = std::make_shared<detail::ArrowSink>(path);
  }

  void add(Row row) {
    std::uint64_t bytes = 0;
    for (Cell const& cell : row.cells()) bytes += detail::cell_bytes(cell);
    if (!rows_.empty() && bytes_ + bytes > settings_.bytes_per_group) flush();
    rows_.push_back(std::move(row));
    bytes_ += bytes;
    if (rows_.size() == settings_.rows_per_group) flush();
  }

  /// Writes what is left and the footer, and makes the file durable under its name.
  void close() {
    if (!rows_.empty()) flush();
    if (!writer_) {
      throw DataError({.what = "a Parquet file without rows",
                       .where = where_,
                       .why = "its columns are not known",
                       .fix = "Add a row before close()."});
    }
    written(writer_->Close());
    sink_->publish();
  }

 private:
  void flush() {
    if (!schema_) {
      schema_ = detail::schema_of_rows(rows_, settings_.binary, where_);
      open();
    }
    auto const table = detail::table_of_rows(rows_, schema_, where_, written_);
    written(writer_->WriteTable(*table, table->num_rows()));
    written_ += rows_.size();
    rows_.clear();
    bytes_ = 0;
  }

  void open() {
    auto writer = ::parquet::arrow::FileWriter::Open(
        *schema_, ::arrow::default_memory_pool(), sink_, properties_,
        ::parquet::ArrowWriterProperties::Builder().store_schema()->build());
    written(writer.status());
    writer_ = std::move(*writer);
  }

  void written(::arrow::Status const& status) const {
    sink_->rethrow();
    if (status.ok()) return;
    throw StoreError({.what = "the file cannot be written",
                      .where = where_,
                      .why = "Arrow says: " + status.ToString(),
                      .fix = "Make room, or choose another folder."});
  }

  ParquetWriterSettings settings_;
  std::string where_;
  std::shared_ptr<::parquet::WriterProperties> properties_;
  std::vector<Row> rows_;
  std::uint64_t bytes_ = 0;    ///< of rows_
  std::uint64_t written_ = 0;  ///< rows in groups before
  std::shared_ptr<::arrow::Schema> schema_;
  std::shared_ptr<detail::ArrowSink> sink_;
  std::unique_ptr<::parquet::arrow::FileWriter> writer_;
};

}  // namespace frugal
