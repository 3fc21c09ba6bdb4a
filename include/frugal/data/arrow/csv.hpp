// SPDX-License-Identifier: Apache-2.0
// needs: arrow
#pragma once

#include <frugal/data/arrow/status.hpp>
#include <frugal/data/arrow/table_set.hpp>
#include <frugal/data/arrow/to_parquet.hpp>
#include <frugal/data/tables/files.hpp>
#include <frugal/error.hpp>
#include <frugal/store/signal_free_thread.hpp>

#include <arrow/csv/api.h>
#include <arrow/io/file.h>
#include <arrow/io/interfaces.h>
#include <arrow/table.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
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
};

namespace detail {

struct CsvOptions {
  ::arrow::csv::ReadOptions read = ::arrow::csv::ReadOptions::Defaults();
  ::arrow::csv::ParseOptions parse = ::arrow::csv::ParseOptions::Defaults();
  ::arrow::csv::ConvertOptions convert = ::arrow::csv::ConvertOptions::Defaults();

  explicit CsvOptions(CsvSettings const& settings) {
    read.autogenerate_column_names = !settings.header && settings.names.empty();
    if (!settings.header) read.column_names = settings.names;
    parse.delimiter = settings.delimiter;
    parse.quote_char = settings.quote;
    parse.newlines_in_values = settings.newlines_in_values;
    for (auto const& [column, type] : settings.types) {
      convert.column_types[column] = arrow_type(type);
    }
  }
};

inline std::shared_ptr<::arrow::io::ReadableFile> open_text(std::filesystem::path const& path) {
  return arrow_value(::arrow::io::ReadableFile::Open(path.string()), path.string(),
                     "the file cannot be opened");
}

}  // namespace detail

/// Reads a CSV file into memory, with Arrow. Types are inferred from all values of a column:
/// integers, floats, booleans, dates and times (integers in their unit), and texts. An empty number
/// is null, an empty text is empty. Give `types` for columns that must not depend on their values.
///
/// Errors  DataError with Arrow's reason: a missing file, a row of another number of columns, a
///         value that its type does not hold, bytes that are no UTF-8. SettingsError for a file
///         above most_bytes, and an unknown column. EmptySourceError for a file without rows.
inline TableSet read_csv(std::filesystem::path const& path, CsvSettings const& settings = {}) {
  std::string const where = path.string();
  detail::require_small(path, settings.most_bytes, "CsvSettings", "csv_to_parquet");
  constexpr char const* what = "the CSV file cannot be read";
  detail::BlockedSignals const blocked;  // threads that Arrow starts take no signals
  auto table = detail::arrow_guarded(
      [&] {
        detail::CsvOptions const options(settings);
        auto const reader =
            detail::arrow_value(::arrow::csv::TableReader::Make(
                                    ::arrow::io::default_io_context(), detail::open_text(path),
                                    options.read, options.parse, options.convert),
                                where, what);
        return detail::arrow_value(reader->Read(), where, what);
      },
      where, what);
  return detail::table_set(std::move(table), settings.columns, where, detail::file_identity(path));
}

/// Writes a CSV file of any size as Parquet, block by block. Types are inferred from the first MiB:
/// give `types` where later values may differ. Returns the rows. The Parquet file must not exist.
inline std::uint64_t csv_to_parquet(std::filesystem::path const& from,
                                    std::filesystem::path const& to,
                                    CsvSettings const& settings = {},
                                    ParquetWriterSettings const& writer = {}) {
  std::string const where = from.string();
  constexpr char const* what = "the CSV file cannot be read";
  detail::BlockedSignals const blocked;
  return detail::arrow_guarded(
      [&] {
        detail::CsvOptions options(settings);
        auto const reader =
            detail::arrow_value(::arrow::csv::StreamingReader::Make(
                                    ::arrow::io::default_io_context(), detail::open_text(from),
                                    options.read, options.parse, options.convert),
                                where, what);
        return detail::to_parquet(*reader, settings.columns, where, what, to, writer);
      },
      where, what);
}

}  // namespace frugal
