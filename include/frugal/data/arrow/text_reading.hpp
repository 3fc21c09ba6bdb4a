// SPDX-License-Identifier: Apache-2.0
// needs: arrow
#pragma once

#include <frugal/data/arrow/parquet_writer.hpp>
#include <frugal/data/arrow/table.hpp>
#include <frugal/data/arrow/table_set.hpp>
#include <frugal/error.hpp>

#include <arrow/memory_pool.h>
#include <arrow/record_batch.h>
#include <arrow/result.h>
#include <arrow/status.h>
#include <arrow/table.h>
#include <arrow/type.h>
#include <arrow/util/byte_size.h>
#include <parquet/arrow/writer.h>
#include <parquet/properties.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace frugal::detail {

inline constexpr char const* fix_text =
    "Correct the file there, or give the column a type in `types`.";

/// What Arrow said while it read a text file: `read_text` tries once more, or throws the DataError.
struct TextFailure {
  ::arrow::Status status;
  std::string where;
};

template <class T>
T text_value(::arrow::Result<T> result, std::string const& where) {
  if (!result.ok()) throw TextFailure{.status = result.status(), .where = where};
  return std::move(result).MoveValueUnsafe();
}

/// How a text file is read this time.
struct TextWay {
  std::int64_t block_bytes = std::int64_t{1} << 20;  ///< a record does not fit into two blocks
  bool threads = true;                               ///< without, Arrow's errors have the row
  bool zoned = false;                                ///< times of given units have a zone
  bool blank_rows = false;                           ///< blank lines are rows

  /// Another way after Arrow's `error`; false if there is none. `whole`: the file in one block, so
  /// that an error counts rows from the beginning of the file.
  bool change(std::string_view error, std::int64_t most, std::int64_t whole) {
    auto const says = [&](char const* text) { return error.find(text) != error.npos; };
    if (straddles(error)) {
      if (block_bytes >= most) return false;
      block_bytes = std::min(most, 4 * block_bytes);
      return true;
    }
    if (says("expected no zone offset") && !zoned) return zoned = true;
    bool const other = threads || (says("in row") && block_bytes < whole);
    if (says("in row")) block_bytes = std::max(block_bytes, whole);
    threads = false;
    return other;
  }

  static bool straddles(std::string_view error) {
    return error.find("straddles two block boundaries") != error.npos;
  }
};

/// What `read(way)` returns, with larger blocks until the longest record fits. After an error a
/// file of up to `most_whole` bytes is read once more in one block.
template <class Read>
auto read_text(std::filesystem::path const& path, std::uint64_t most_record,
               std::uint64_t most_whole, char const* what, Read const& read) {
  constexpr std::uint64_t limit = std::numeric_limits<std::int32_t>::max();  // Arrow's
  auto const most = static_cast<std::int64_t>(std::clamp<std::uint64_t>(most_record, 2, limit));
  std::error_code error;
  std::uint64_t const size = std::filesystem::file_size(path, error);
  std::int64_t const whole =
      error || size > std::min(most_whole, limit - 1) ? 0 : static_cast<std::int64_t>(size) + 1;
  TextWay way;
  way.block_bytes = std::min(way.block_bytes, most);
  while (true) {
    try {
      return arrow_guarded([&] { return read(std::as_const(way)); }, path.string(), what);
    } catch (TextFailure const& failure) {
      if (way.change(failure.status.message(), most, whole)) continue;
      if (TextWay::straddles(failure.status.message())) {
        throw DataError({.what = "a record of the file is too long",
                         .where = failure.where,
                         .why = "it does not fit into " + std::to_string(most) +
                                " bytes, as most_record_bytes says",
                         .fix = "Raise most_record_bytes, or look for a quotation mark that is not "
                                "closed."});
      }
      check_arrow(failure.status, failure.where, what, fix_text);
    }
  }
}

/// Whether a double that was read from this number is what the text says: integers without point
/// and exponent to the last digit, others rounded, and none of them infinite.
inline bool exact_number(std::string_view text, double value) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  if (text.find_first_of("nN") != text.npos) return true;  // nan, inf
  bool const negative = text.starts_with('-');
  if (negative || text.starts_with('+')) text.remove_prefix(1);
  if (value > std::numeric_limits<double>::max() || value < std::numeric_limits<double>::lowest()) {
    return false;
  }
  if (text.find_first_not_of("0123456789") != text.npos) return true;
  while (text.size() > 1 && text.front() == '0') text.remove_prefix(1);
  char digits[400];
  int const count = std::snprintf(digits, sizeof digits, "%.0f", negative ? -value : value);
  return text == std::string_view(digits, static_cast<std::size_t>(std::max(count, 0)));
}

/// The error for an integer that the type of its column, double, does not hold.
[[noreturn]] inline void inexact_number(std::string const& where, std::string const& number,
                                        std::string fix) {
  throw DataError({.what = "a number would be read as another number",
                   .where = where,
                   .why = "it is " + number.substr(0, 60) +
                          ", which neither int64 nor double holds, or its column has fractions",
                   .fix = std::move(fix)});
}

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
