// SPDX-License-Identifier: Apache-2.0
// needs: arrow
#pragma once

#include <frugal/data/arrow/builder.hpp>
#include <frugal/data/tables/new_file.hpp>
#include <frugal/data/tables/row.hpp>
#include <frugal/error.hpp>

#include <arrow/io/file.h>
#include <arrow/memory_pool.h>
#include <arrow/table.h>
#include <arrow/util/compression.h>
#include <parquet/arrow/writer.h>
#include <parquet/properties.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace frugal {

/// How a Parquet file is written.
struct ParquetWriterSettings {
  std::uint64_t rows_per_group = 10000;  ///< what a reader decodes at once
  std::string compression = "zstd";      ///< or "none", "snappy", "gzip", "lz4", "brotli"
  std::vector<std::string> binary = {};  ///< columns of std::string that hold bytes, no UTF-8 text
};

/// Writes rows as a Parquet file, with checksums. The file has its name once close() has returned:
/// until then it is `path` with ".partial", and a writer that is destroyed without close() removes
/// it.
///
/// The rows of the first group say what type a column has: int64, double, bool, string or binary,
/// lists of numbers of their type, lists of strings. Holds one group of rows in memory.
///
/// Errors  DataError for a row of other columns, or a cell of another type than its column's; for a
///         column that is null in all rows of the first group. StoreError if `path` exists, or the
///         disk does not take the file. SettingsError for an unknown compression or groups of 0
///         rows.
class ParquetWriter {
 public:
  explicit ParquetWriter(std::filesystem::path path, ParquetWriterSettings settings = {})
      : settings_(std::move(settings)), file_(std::move(path)) {
    std::string const& name = settings_.compression;
    auto const codec = ::arrow::util::Codec::GetCompressionType(name == "none"  ? "uncompressed"
                                                                : name == "lz4" ? "lz4_raw"
                                                                                : name);
    if (!codec.ok() || !::arrow::util::Codec::IsAvailable(*codec)) {
      throw SettingsError({.what = "there is no compression " + settings_.compression,
                           .where = file_.path().string(),
                           .why = "",
                           .fix = "Name one of none, snappy, gzip, zstd, lz4 and brotli."});
    }
    if (settings_.rows_per_group == 0) {
      throw SettingsError({.what = "groups of 0 rows",
                           .where = file_.path().string(),
                           .why = "",
                           .fix = "Set rows_per_group to 1 or more."});
    }
    codec_ = *codec;
  }

  void add(Row row) {
    rows_.push_back(std::move(row));
    if (rows_.size() == settings_.rows_per_group) flush();
  }

  /// Writes what is left and the footer, and makes the file durable under its name.
  void close() {
    if (!rows_.empty()) flush();
    if (!writer_) {
      throw DataError({.what = "a Parquet file without rows",
                       .where = file_.path().string(),
                       .why = "its columns are not known",
                       .fix = "Add a row before close()."});
    }
    written(writer_->Close());
    written(sink_->Close());
    file_.commit();
  }

 private:
  void flush() {
    if (!schema_) {
      schema_ = detail::schema_of_rows(rows_, settings_.binary, file_.path().string());
      open();
    }
    auto const table = detail::table_of_rows(rows_, schema_, file_.path().string());
    written(writer_->WriteTable(*table, table->num_rows()));
    rows_.clear();
  }

  void open() {
    auto sink = ::arrow::io::FileOutputStream::Open(file_.partial().string());
    written(sink.status());
    sink_ = *sink;
    auto const properties =
        ::parquet::WriterProperties::Builder()
            .compression(codec_)
            ->max_row_group_length(static_cast<std::int64_t>(settings_.rows_per_group))
            ->enable_page_checksum()
            ->build();
    auto writer = ::parquet::arrow::FileWriter::Open(
        *schema_, ::arrow::default_memory_pool(), sink_, properties,
        ::parquet::ArrowWriterProperties::Builder().store_schema()->build());
    written(writer.status());
    writer_ = std::move(*writer);
  }

  void written(::arrow::Status const& status) const {
    if (status.ok()) return;
    throw StoreError({.what = "the file cannot be written",
                      .where = file_.partial().string(),
                      .why = "Arrow says: " + status.ToString(),
                      .fix = "Make room, or choose another folder."});
  }

  ParquetWriterSettings settings_;
  detail::NewTableFile file_;
  ::arrow::Compression::type codec_ = ::arrow::Compression::UNCOMPRESSED;
  std::vector<Row> rows_;
  std::shared_ptr<::arrow::Schema> schema_;
  std::shared_ptr<::arrow::io::FileOutputStream> sink_;
  std::unique_ptr<::parquet::arrow::FileWriter> writer_;
};

}  // namespace frugal
