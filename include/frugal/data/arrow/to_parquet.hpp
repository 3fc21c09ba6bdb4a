// SPDX-License-Identifier: Apache-2.0
// needs: arrow
#pragma once

#include <frugal/data/arrow/cells.hpp>
#include <frugal/data/arrow/parquet_writer.hpp>
#include <frugal/data/arrow/status.hpp>
#include <frugal/data/arrow/table_set.hpp>
#include <frugal/data/arrow/text_reading.hpp>
#include <frugal/error.hpp>

#include <arrow/memory_pool.h>
#include <arrow/record_batch.h>
#include <arrow/table.h>
#include <arrow/type.h>
#include <arrow/util/byte_size.h>
#include <parquet/arrow/writer.h>
#include <parquet/properties.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace frugal::detail {

/// Writes batches into row groups of limited rows and bytes.
class GroupedBatches {
 public:
  GroupedBatches(::parquet::arrow::FileWriter& writer, ParquetWriterSettings const& settings)
      : writer_(writer), settings_(settings) {}

  ::arrow::Status write(::arrow::RecordBatch const& batch) {
    auto const sum = ::arrow::util::ReferencedBufferSize(batch);
    std::uint64_t const bytes = sum.ok() ? static_cast<std::uint64_t>(*sum) : 0;
    std::int64_t const rows = batch.num_rows();
    auto const left = static_cast<std::int64_t>(settings_.rows_per_group - rows_);
    if (rows > 1 && (bytes > settings_.bytes_per_group || rows > left)) {
      std::int64_t const first = rows > left ? left : rows / 2;
      ARROW_RETURN_NOT_OK(write(*batch.Slice(0, first)));
      return write(*batch.Slice(first));
    }
    if (rows_ > 0 && bytes_ + bytes > settings_.bytes_per_group) {
      ARROW_RETURN_NOT_OK(writer_.NewBufferedRowGroup());
      rows_ = bytes_ = 0;
    }
    ARROW_RETURN_NOT_OK(writer_.WriteRecordBatch(batch));
    rows_ += static_cast<std::uint64_t>(rows);
    bytes_ += bytes;
    // A full group ends by itself.
    if (rows_ == settings_.rows_per_group) rows_ = bytes_ = 0;
    return ::arrow::Status::OK();
  }

 private:
  ::parquet::arrow::FileWriter& writer_;
  ParquetWriterSettings const& settings_;
  std::uint64_t rows_ = 0;  ///< of the group
  std::uint64_t bytes_ = 0;
};

/// DataError for a column in which no value was found that says what type it has.
inline void require_typed(::arrow::Schema const& schema, std::string const& where,
                          std::string const& among) {
  for (auto const& field : schema.fields()) {
    if (field->type()->id() != ::arrow::Type::NA) continue;
    throw DataError({.what = "the type of a column is not known",
                     .where = where + ", column " + field->name(),
                     .why = "it has no value in " + among,
                     .fix = "Give the column a type in `types`, or leave it out by naming the "
                            "others in `columns`."});
  }
}

/// Writes what a reader gives, batch by batch, as a Parquet file. Returns the rows.
/// `check(batch, first)` is called with the rows from `first` on before they are written, and
/// `done()` before the file gets its name.
template <class Check, class Done>
std::uint64_t to_parquet(::arrow::RecordBatchReader& reader,
                         std::vector<std::string> const& columns, std::string const& where,
                         char const* what, std::filesystem::path const& to,
                         ParquetWriterSettings const& settings, Check&& check, Done&& done) {
  require_free(to);
  if (!settings.binary.empty()) {
    throw SettingsError({.what = "the columns of a text file are no bytes",
                         .where = to.string() + ", ParquetWriterSettings::binary",
                         .why = "it names the column " + settings.binary.front(),
                         .fix = "Leave `binary` empty."});
  }
  auto const properties = parquet_properties(settings, to.string());
  auto const sink = std::make_shared<ArrowSink>(to);
  auto const written = [&](::arrow::Status const& status) {
    sink->rethrow();
    check_arrow(status, to.string(), "the file cannot be written");
  };
  std::unique_ptr<::parquet::arrow::FileWriter> writer;
  std::optional<GroupedBatches> groups;
  std::uint64_t rows = 0;
  auto const next = [&] {
    return text_value(reader.Next(),
                      rows == 0 ? where : where + ", after row " + std::to_string(rows - 1));
  };
  while (auto const batch = next()) {
    auto table = arrow_value(::arrow::Table::FromRecordBatches({batch}), where, what);
    table = chosen(flat(std::move(table), where), columns, where);
    if (!writer) {
      if (table->num_rows() > 0) {
        require_typed(*table->schema(), where,
                      "the first " + std::to_string(table->num_rows()) + " rows");
      }
      for (auto const& field : table->schema()->fields()) require_cells(*field, where);
      auto made = ::parquet::arrow::FileWriter::Open(
          *table->schema(), ::arrow::default_memory_pool(), sink, properties,
          ::parquet::ArrowWriterProperties::Builder().store_schema()->build());
      written(made.status());
      writer = std::move(*made);
      groups.emplace(*writer, settings);
    }
    auto const whole = arrow_value(table->CombineChunksToBatch(), where, what);
    check(*whole, rows);
    written(groups->write(*whole));
    rows += static_cast<std::uint64_t>(table->num_rows());
  }
  if (rows == 0) {
    throw EmptySourceError({.what = "the file has no rows",
                            .where = where,
                            .why = "",
                            .fix = "Give at least one row."});
  }
  std::forward<Done>(done)();
  written(writer->Close());
  sink->publish();
  return rows;
}

}  // namespace frugal::detail
