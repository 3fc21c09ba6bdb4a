// SPDX-License-Identifier: Apache-2.0
// needs: arrow
#pragma once

#include <frugal/base/signal_free_thread.hpp>
#include <frugal/data/arrow/table.hpp>
#include <frugal/data/arrow/table_set.hpp>
#include <frugal/data/arrow/text_reading.hpp>
#include <frugal/data/tables/files.hpp>
#include <frugal/error.hpp>

#include <arrow/array/array_binary.h>
#include <arrow/array/array_primitive.h>
#include <arrow/csv/api.h>
#include <arrow/io/file.h>
#include <arrow/io/interfaces.h>
#include <arrow/record_batch.h>
#include <arrow/table.h>
#include <arrow/type.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace frugal {

/// How a CSV file is read.
struct CsvSettings {
  std::vector<std::string> columns = {};  ///< the columns to read; empty: all
  char delimiter = ',';
  char quote = '"';                                   ///< doubled within a quoted value
  bool header = true;                                 ///< the first line names the columns
  std::vector<std::string> names = {};                ///< without a header; empty: f0, f1, ...
  std::map<std::string, ColumnType> types = {};       ///< of columns; the others are inferred
  bool newlines_in_values = false;                    ///< quoted values may have line ends
  std::uint64_t most_bytes = std::uint64_t{1} << 30;  ///< of a file that is read into memory
  std::uint64_t most_record_bytes = 256U << 20;       ///< of a row, and of a block of rows
};

namespace detail {

/// Settings that contradict each other.
inline void require_csv(CsvSettings const& settings, std::string const& where) {
  if (!settings.header || settings.names.empty()) return;
  throw SettingsError({.what = "a CSV file has two names for each column",
                       .where = where,
                       .why = "CsvSettings::names is given, and `header` is true",
                       .fix = "Set `header` to false if the first line is a row; or leave `names` "
                              "empty, since the first line names the columns."});
}

/// The settings with which the same file would have other values in columns of the same names and
/// types.
inline std::string reading_of(CsvSettings const& settings) {
  return std::string("delimiter ") + settings.delimiter + ", quote " + settings.quote +
         ", header " + (settings.header ? "true" : "false") + ", newlines_in_values " +
         (settings.newlines_in_values ? "true" : "false");
}

struct CsvOptions {
  ::arrow::csv::ReadOptions read = ::arrow::csv::ReadOptions::Defaults();
  ::arrow::csv::ParseOptions parse = ::arrow::csv::ParseOptions::Defaults();
  ::arrow::csv::ConvertOptions convert = ::arrow::csv::ConvertOptions::Defaults();

  CsvOptions(CsvSettings const& settings, TextWay const& way) {
    read.autogenerate_column_names = !settings.header && settings.names.empty();
    if (!settings.header) read.column_names = settings.names;
    read.block_size = static_cast<std::int32_t>(way.block_bytes);
    read.use_threads = way.threads;
    parse.delimiter = settings.delimiter;
    parse.quote_char = settings.quote;
    parse.newlines_in_values = settings.newlines_in_values;
    parse.ignore_empty_lines = !way.blank_rows;
    std::erase_if(convert.null_values, [](std::string text) {
      for (char& c : text) c = c == 'N' ? 'n' : c == 'A' ? 'a' : c;
      return text == "nan" || text == "-nan";
    });
    for (auto const& [column, type] : settings.types) {
      convert.column_types[column] = arrow_type(type, way.zoned);
    }
  }
};

inline std::shared_ptr<::arrow::io::ReadableFile> open_text(std::filesystem::path const& path) {
  return arrow_value(::arrow::io::ReadableFile::Open(path.string()), path.string(),
                     "the file cannot be opened", "Give the path of a readable file.");
}

inline std::shared_ptr<::arrow::csv::StreamingReader> csv_stream(std::filesystem::path const& path,
                                                                 CsvOptions const& options) {
  return text_value(
      ::arrow::csv::StreamingReader::Make(::arrow::io::default_io_context(), open_text(path),
                                          options.read, options.parse, options.convert),
      path.string());
}

/// Compares the numbers of columns that were inferred to be double with the file's digits.
///
/// Cost  a look at each double. A file that has one from 2^53 on, or an infinite one, is read once
///       more: those columns alone, as texts.
class CsvDigits {
 public:
  CsvDigits(std::filesystem::path const& path, CsvSettings const& settings, TextWay const& way)
      : path_(path), settings_(settings), way_(way) {}

  /// DataError for a number of the batch that is another number than the file's. `first` is the
  /// batch's first row; batches come in their order.
  void check(::arrow::RecordBatch const& batch, std::uint64_t first) {
    for (std::int64_t i = 0; i < batch.num_rows(); ++i) {
      for (int c = 0; c < batch.num_columns(); ++c) {
        if (batch.column(c)->type_id() != ::arrow::Type::DOUBLE) continue;
        auto const& numbers = static_cast<::arrow::DoubleArray const&>(*batch.column(c));
        double const value = numbers.Value(i);
        constexpr double exact = 9007199254740992;  // 2^53
        if (!(value >= exact || value <= -exact) || numbers.IsNull(i)) continue;
        std::string const& name = batch.schema()->field(c)->name();
        if (settings_.types.contains(name)) continue;
        std::uint64_t const row = first + static_cast<std::uint64_t>(i);
        std::string const text(text_of(*batch.schema(), name, row));
        if (exact_number(text, value)) continue;
        inexact_number(
            path_.string() + ", row " + std::to_string(row) + ", column " + name, text,
            "Give the column the type ColumnType::text in `types` to read its digits, or "
            "ColumnType::real to have it rounded.");
      }
    }
  }

 private:
  std::string_view text_of(::arrow::Schema const& schema, std::string const& name,
                           std::uint64_t row) {
    if (!texts_) {
      CsvOptions options(settings_, way_);
      options.convert.strings_can_be_null = false;
      for (auto const& field : schema.fields()) {
        if (field->type()->id() != ::arrow::Type::DOUBLE) continue;
        options.convert.include_columns.push_back(field->name());
        options.convert.column_types[field->name()] = ::arrow::utf8();
      }
      texts_ = csv_stream(path_, options);
    }
    while (!batch_ || row >= first_ + static_cast<std::uint64_t>(batch_->num_rows())) {
      if (batch_) first_ += static_cast<std::uint64_t>(batch_->num_rows());
      batch_ = text_value(texts_->Next(), path_.string());
      if (!batch_) return {};
    }
    auto const column = batch_->GetColumnByName(name);
    return static_cast<::arrow::StringArray const&>(*column).GetView(
        static_cast<std::int64_t>(row - first_));
  }

  std::filesystem::path path_;
  CsvSettings const& settings_;
  TextWay way_;
  std::shared_ptr<::arrow::csv::StreamingReader> texts_;
  std::shared_ptr<::arrow::RecordBatch> batch_;
  std::uint64_t first_ = 0;  ///< row of batch_
};

/// The names of `types` are columns.
inline void require_columns(std::map<std::string, ColumnType> const& types,
                            std::vector<std::string> const& columns, std::string const& where) {
  for (auto const& [column, type] : types) require_column(column, columns, where + ", `types`");
}

}  // namespace detail

/// Reads a CSV file into memory, with Arrow. Types are inferred from all values of a column:
/// integers, floats, booleans, dates and times (integers in the unit that `unit(column)` says), and
/// texts. An empty number is null, and so are NA, N/A, NULL and the like; nan is a float. An empty
/// text is empty. Blank lines are no rows, but in a file of one column, where they are empty
/// values. Give `types` for columns that must not depend on their values.
///
/// Errors  DataError: a missing file, a row of another number of columns, a value that its type
///         does not hold, a number that would be rounded to another integer or to infinity, a
///         column without any value and without a type, bytes that are no UTF-8. SettingsError for
///         a file above most_bytes, for an unknown column, in `types` too, and for `names` with a
///         header. EmptySourceError for a file without rows.
inline TableSet read_csv(std::filesystem::path const& path, CsvSettings const& settings = {}) {
  std::string const where = path.string();
  detail::require_csv(settings, where);
  detail::require_small(path, settings.most_bytes, "CsvSettings", "csv_to_parquet");
  constexpr char const* what = "the CSV file cannot be read";
  detail::BlockedSignals const blocked;  // threads that Arrow starts take no signals
  auto const read = [&](detail::TextWay way) {
    auto const once = [&] {
      detail::CsvOptions const options(settings, way);
      auto const reader =
          detail::text_value(::arrow::csv::TableReader::Make(::arrow::io::default_io_context(),
                                                             detail::open_text(path), options.read,
                                                             options.parse, options.convert),
                             where);
      return detail::text_value(reader->Read(), where);
    };
    auto table = once();
    if (table->num_columns() == 1) {
      way.blank_rows = true;
      table = once();
    }
    detail::require_columns(settings.types, table->ColumnNames(), where);
    table = detail::chosen(table, settings.columns, where);
    if (table->num_rows() > 0) detail::require_typed(*table->schema(), where, "any row");
    detail::CsvDigits digits(path, settings, way);
    ::arrow::TableBatchReader batches(*table);
    std::uint64_t first = 0;
    while (auto const batch = detail::text_value(batches.Next(), where)) {
      digits.check(*batch, first);
      first += static_cast<std::uint64_t>(batch->num_rows());
    }
    return table;
  };
  auto table = detail::read_text(path, settings.most_record_bytes, settings.most_bytes, what, read);
  return detail::table_set(std::move(table), {}, where, detail::file_identity(path),
                           detail::reading_of(settings));
}

/// Writes a CSV file of any size as Parquet, block by block. Types are inferred from the first MiB:
/// give `types` where later values may differ. Returns the rows. The Parquet file must not exist.
///
/// Errors  those of read_csv, most_bytes aside, and those of ParquetWriter.
inline std::uint64_t csv_to_parquet(std::filesystem::path const& from,
                                    std::filesystem::path const& to,
                                    CsvSettings const& settings = {},
                                    ParquetWriterSettings const& writer = {}) {
  std::string const where = from.string();
  detail::require_csv(settings, where);
  constexpr char const* what = "the CSV file cannot be read";
  detail::BlockedSignals const blocked;
  auto const convert = [&](detail::TextWay way) {
    auto reader = detail::csv_stream(from, detail::CsvOptions(settings, way));
    if (reader->schema()->num_fields() == 1) {
      way.blank_rows = true;
      reader = detail::csv_stream(from, detail::CsvOptions(settings, way));
    }
    detail::require_columns(settings.types, reader->schema()->field_names(), where);
    detail::CsvDigits digits(from, settings, way);
    return detail::to_parquet(
        *reader, settings.columns, where, what, to, writer,
        [&](::arrow::RecordBatch const& batch, std::uint64_t first) { digits.check(batch, first); },
        [] {});
  };
  return detail::read_text(from, settings.most_record_bytes, 0, what, convert);
}

}  // namespace frugal
