// SPDX-License-Identifier: Apache-2.0
// needs: arrow
#pragma once

#include <frugal/data/arrow/csv.hpp>
#include <frugal/data/arrow/json_depth.hpp>
#include <frugal/data/arrow/status.hpp>
#include <frugal/data/arrow/table_set.hpp>
#include <frugal/data/arrow/to_parquet.hpp>
#include <frugal/data/tables/files.hpp>
#include <frugal/store/signal_free_thread.hpp>

#include <arrow/json/api.h>
#include <arrow/memory_pool.h>
#include <arrow/type.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace frugal {

/// How a JSONL file is read: an object on each line.
struct JsonlSettings {
  std::vector<std::string> columns = {};              ///< the columns to read; empty: all
  std::map<std::string, ColumnType> types = {};       ///< of columns; the others are inferred
  std::uint64_t most_bytes = std::uint64_t{1} << 30;  ///< of a file that is read into memory
};

namespace detail {

inline ::arrow::json::ParseOptions jsonl_options(JsonlSettings const& settings) {
  auto options = ::arrow::json::ParseOptions::Defaults();
  std::vector<std::shared_ptr<::arrow::Field>> fields;
  for (auto const& [column, type] : settings.types) {
    fields.push_back(::arrow::field(column, arrow_type(type)));
  }
  if (!fields.empty()) options.explicit_schema = ::arrow::schema(fields);
  return options;
}

inline std::shared_ptr<::arrow::io::InputStream> open_jsonl(std::filesystem::path const& path) {
  return std::make_shared<ShallowJson>(open_text(path));
}

}  // namespace detail

/// Reads a JSONL file into memory, with Arrow. Numbers are integers or floats, strings texts, or
/// times if all look like "2026-01-31 12:00:00" (integers in seconds); arrays of numbers or strings
/// are lists. Fields of an object within the object have names with a dot. A field that a line
/// lacks is null.
///
/// Errors  DataError with Arrow's reason: a missing file, a line that is no object, a value of
///         another type than those before, more than 64 levels of arrays and objects. SettingsError
///         for a file above most_bytes, an unknown column, and one whose type no cell holds.
///         EmptySourceError for a file without rows.
inline TableSet read_jsonl(std::filesystem::path const& path, JsonlSettings const& settings = {}) {
  std::string const where = path.string();
  detail::require_small(path, settings.most_bytes, "JsonlSettings", "jsonl_to_parquet");
  constexpr char const* what = "the JSONL file cannot be read";
  detail::BlockedSignals const blocked;  // threads that Arrow starts take no signals
  auto table = detail::arrow_guarded(
      [&] {
        auto const reader = detail::arrow_value(
            ::arrow::json::TableReader::Make(
                ::arrow::default_memory_pool(), detail::open_jsonl(path),
                ::arrow::json::ReadOptions::Defaults(), detail::jsonl_options(settings)),
            where, what);
        return detail::arrow_value(reader->Read(), where, what);
      },
      where, what);
  return detail::table_set(std::move(table), settings.columns, where, detail::file_identity(path));
}

/// Writes a JSONL file of any size as Parquet, block by block. Columns and types are those of the
/// first MiB, and of `types`. Returns the rows. The Parquet file must not exist.
inline std::uint64_t jsonl_to_parquet(std::filesystem::path const& from,
                                      std::filesystem::path const& to,
                                      JsonlSettings const& settings = {},
                                      ParquetWriterSettings const& writer = {}) {
  std::string const where = from.string();
  constexpr char const* what = "the JSONL file cannot be read";
  detail::BlockedSignals const blocked;
  return detail::arrow_guarded(
      [&] {
        auto const reader = detail::arrow_value(
            ::arrow::json::StreamingReader::Make(detail::open_jsonl(from),
                                                 ::arrow::json::ReadOptions::Defaults(),
                                                 detail::jsonl_options(settings)),
            where, what);
        return detail::to_parquet(*reader, settings.columns, where, what, to, writer);
      },
      where, what);
}

}  // namespace frugal
