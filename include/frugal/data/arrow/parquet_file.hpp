// SPDX-License-Identifier: Apache-2.0
// needs: arrow
#pragma once

#include <frugal/base/signal_free_thread.hpp>
#include <frugal/data/arrow/int96.hpp>
#include <frugal/data/arrow/pooled_input.hpp>
#include <frugal/data/arrow/status.hpp>
#include <frugal/data/arrow/table.hpp>
#include <frugal/data/shards/open_files.hpp>
#include <frugal/error.hpp>

#include <arrow/table.h>
#include <arrow/type.h>
#include <parquet/arrow/reader.h>
#include <parquet/file_reader.h>
#include <parquet/metadata.h>
#include <parquet/properties.h>
#include <parquet/schema.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace frugal::detail {

/// A Parquet file whose footer was read. Const, and safe to read from several threads: each read
/// has a reader of its own, and they share the footer. It is open while it is read alone
/// (FilePool).
class ParquetFile {
 public:
  /// Reads the footer. `columns` are the names of the columns to read; empty means all.
  ///
  /// Errors  DataError for a file that is missing, truncated, damaged or no Parquet; IoError for
  ///         one that cannot be read now; SettingsError for a column that it lacks.
  ParquetFile(std::filesystem::path const& path, std::vector<std::string> columns, bool verify,
              TimeUnit int96 = TimeUnit::nanosecond)
      : name_(path.string()),
        verify_(verify),
        int96_(int96),
        columns_(std::move(columns)),
        file_(table_file(path, "Give the path of a readable Parquet file.")) {
    guarded(
        [&](std::shared_ptr<PooledInput> const& input) {
          footer_ = ::parquet::ParquetFileReader::Open(input, properties())->metadata();
          find_columns();
          check_arrow(reader(input, false)->GetSchema(&schema_), name_,
                      "the schema cannot be read");
          for (std::string const& column : columns_) {
            if (schema_->GetFieldIndex(column) >= 0) continue;
            throw DataError({.what = "two columns have one name",
                             .where = name_,
                             .why = "both are called " + column,
                             .fix = "Leave the column out by naming others in `columns`."});
          }
        },
        name_, "the footer cannot be read");
  }

  std::string const& name() const { return name_; }
  std::vector<std::string> const& columns() const { return columns_; }
  int groups() const { return footer_->num_row_groups(); }

  /// Rows of a group. DataError for a claim that cannot be.
  std::uint64_t rows(int group) const {
    return arrow_guarded(
        [&] {
          std::int64_t const rows = footer_->RowGroup(group)->num_rows();
          if (rows < 0 || rows > std::int64_t{1} << 40) {
            throw DataError({.what = "a row group has " + std::to_string(rows) + " rows",
                             .where = where(group),
                             .why = "",
                             .fix = "Fetch or write the file again."});
          }
          return static_cast<std::uint64_t>(rows);
        },
        where(group), "the footer is damaged");
  }

  /// Bytes that the columns of a row group take when they are decoded, by the footer: too few where
  /// repeated texts are stored once.
  std::uint64_t bytes(int group) const {
    return arrow_guarded(
        [&] {
          auto const chunks = footer_->RowGroup(group);
          std::uint64_t sum = 0;
          for (int const leaf : leaves_) {
            auto const chunk = chunks->ColumnChunk(leaf);
            int const width = ::parquet::GetTypeByteSize(chunk->type());
            std::int64_t const stored = chunk->total_uncompressed_size();
            sum += static_cast<std::uint64_t>(
                std::max<std::int64_t>({stored, width * chunk->num_values(), 0}));
          }
          return sum;
        },
        where(group), "the footer is damaged");
  }

  /// Decodes the columns of a row group, in the order of columns().
  std::shared_ptr<::arrow::Table> read(int group, bool threads) const {
    constexpr char const* what = "a row group cannot be read";
    BlockedSignals const blocked;  // threads that Arrow starts take no signals
    auto table = guarded(
        [&](std::shared_ptr<PooledInput> const& input) {
          auto const from = reader(input, threads);
          for (int const leaf : int96_leaves_) {
            require_int96(*from->parquet_reader()->RowGroup(group)->Column(leaf), int96_,
                          where(group));
          }
          auto read = from->ReadRowGroup(group, leaves_);
          // A list or a dictionary of texts beyond 2 GiB; a plain column comes in chunks.
          bool const large = read.status().IsNotImplemented() || read.status().IsCapacityError();
          return arrow_value(std::move(read), where(group), what,
                             large ? smaller_groups : "Fetch or write the file again.");
        },
        where(group), what);
    if (static_cast<std::uint64_t>(table->num_rows()) != rows(group)) {
      throw DataError({.what = "a row group is damaged",
                       .where = where(group),
                       .why = "the footer promises " + std::to_string(rows(group)) +
                              " rows, and its pages hold " + std::to_string(table->num_rows()),
                       .fix = "Fetch or write the file again."});
    }
    std::vector<int> order;
    for (std::string const& column : columns_) {
      order.push_back(table->schema()->GetFieldIndex(column));
    }
    return arrow_value(table->SelectColumns(order), where(group), what);
  }

  ::arrow::Field const& field(std::string const& column) const {
    return *schema_->field(schema_->GetFieldIndex(column));
  }

  /// Names and types of the columns that are read.
  std::string schema_text() const {
    std::string text;
    for (std::string const& column : columns_) {
      text += column + ": " + field(column).type()->ToString() + "; ";
    }
    return text;
  }

  std::string where(int group) const { return name_ + ", row group " + std::to_string(group); }

 private:
  ::parquet::ReaderProperties properties() const {
    ::parquet::ReaderProperties properties = ::parquet::default_reader_properties();
    properties.set_page_checksum_verification(verify_);
    return properties;
  }

  /// What `read(input)` returns. What the file threw goes before what Arrow makes of it.
  template <class Read>
  std::invoke_result_t<Read&, std::shared_ptr<PooledInput> const&> guarded(Read&& read,
                                                                           std::string const& where,
                                                                           char const* what) const {
    auto const input = std::make_shared<PooledInput>(file_);
    try {
      return arrow_guarded([&] { return read(input); }, where, what);
    } catch (...) {
      input->rethrow();
      throw;
    }
  }

  std::unique_ptr<::parquet::arrow::FileReader> reader(std::shared_ptr<PooledInput> const& input,
                                                       bool threads) const {
    ::parquet::arrow::FileReaderBuilder builder;
    check_arrow(builder.Open(input, properties(), footer_), name_, "the file cannot be read");
    ::parquet::ArrowReaderProperties how;
    how.set_use_threads(threads);
    how.set_coerce_int96_timestamp_unit(int96_.arrow);
    how.set_pre_buffer(false);  // that would read in a thread of Arrow's own
    builder.properties(how);
    std::unique_ptr<::parquet::arrow::FileReader> reader;
    check_arrow(builder.Build(&reader), name_, "the schema cannot be read");
    return reader;
  }

  /// Finds the leaves of the columns that are to be read: a nested column has several.
  void find_columns() {
    ::parquet::SchemaDescriptor const& schema = *footer_->schema();
    std::vector<std::string> all;
    for (int leaf = 0; leaf < schema.num_columns(); ++leaf) {
      std::string const& root = schema.GetColumnRoot(leaf)->name();
      if (std::find(all.begin(), all.end(), root) == all.end()) all.push_back(root);
    }
    if (columns_.empty()) columns_ = all;
    for (std::string const& column : columns_) {
      if (std::find(all.begin(), all.end(), column) != all.end()) continue;
      std::string names;
      for (std::string const& each : all) names += (names.empty() ? "" : ", ") + each;
      throw SettingsError({.what = "there is no column " + column,
                           .where = name_,
                           .why = "the columns are " + names,
                           .fix = "Name one of them."});
    }
    for (int leaf = 0; leaf < schema.num_columns(); ++leaf) {
      std::string const& root = schema.GetColumnRoot(leaf)->name();
      if (std::find(columns_.begin(), columns_.end(), root) != columns_.end()) {
        leaves_.push_back(leaf);
        if (schema.Column(leaf)->physical_type() == ::parquet::Type::INT96) {
          int96_leaves_.push_back(leaf);
        }
      }
    }
  }

  std::string name_;
  bool verify_;
  Int96Unit int96_;
  std::vector<std::string> columns_;
  std::vector<int> leaves_;
  std::vector<int> int96_leaves_;
  PooledFile file_;
  std::shared_ptr<::parquet::FileMetaData> footer_;
  std::shared_ptr<::arrow::Schema> schema_;
};

}  // namespace frugal::detail
