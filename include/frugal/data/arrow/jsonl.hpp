// SPDX-License-Identifier: Apache-2.0
// needs: arrow
#pragma once

#include <frugal/base/signal_free_thread.hpp>
#include <frugal/data/arrow/csv.hpp>
#include <frugal/data/arrow/json_depth.hpp>
#include <frugal/data/arrow/status.hpp>
#include <frugal/data/arrow/table_set.hpp>
#include <frugal/data/arrow/text_reading.hpp>
#include <frugal/data/arrow/to_parquet.hpp>
#include <frugal/data/tables/files.hpp>
#include <frugal/error.hpp>

#include <arrow/json/api.h>
#include <arrow/memory_pool.h>
#include <arrow/record_batch.h>
#include <arrow/table.h>
#include <arrow/type.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace frugal {

/// How a JSONL file is read: an object on each line.
struct JsonlSettings {
  std::vector<std::string> columns = {};              ///< the columns to read; empty: all
  std::map<std::string, ColumnType> types = {};       ///< of columns; the others are inferred
  std::uint64_t most_bytes = std::uint64_t{1} << 30;  ///< of a file that is read into memory
  std::uint64_t most_record_bytes = 256U << 20;       ///< of a line, and of a block of lines
};

namespace detail {

/// A column whose type is given: its keys, from the line's object inwards.
struct JsonColumn {
  std::vector<std::string> keys;
  ColumnType type;
};

/// The columns as fields; fields of an object as fields of a struct.
inline ::arrow::FieldVector json_fields(std::vector<JsonColumn> const& columns,
                                        std::string const& where) {
  std::map<std::string, std::vector<JsonColumn>> by_key;
  for (JsonColumn const& column : columns) by_key[column.keys.front()].push_back(column);
  ::arrow::FieldVector fields;
  for (auto& [key, inner] : by_key) {
    auto const leaf = std::find_if(inner.begin(), inner.end(),
                                   [](JsonColumn const& each) { return each.keys.size() == 1; });
    if (leaf != inner.end()) {
      if (inner.size() > 1) {
        throw SettingsError({.what = "a column has a type, and fields that have types",
                             .where = where + ", `types`, " + key,
                             .why = "a value is no object as well",
                             .fix = "Name either of them."});
      }
      if (leaf->type == ColumnType::days) {
        throw SettingsError({.what = "JSON has no dates",
                             .where = where + ", `types`, " + key,
                             .why = "",
                             .fix = "Read them as ColumnType::text, or as seconds."});
      }
      fields.push_back(::arrow::field(key, arrow_type(leaf->type)));
      continue;
    }
    for (JsonColumn& each : inner) each.keys.erase(each.keys.begin());
    fields.push_back(::arrow::field(key, ::arrow::struct_(json_fields(inner, where))));
  }
  return fields;
}

/// A JSONL file that is read: its options, and what is seen of it on the way.
class JsonlReading {
 public:
  JsonlReading(std::filesystem::path const& path, JsonlSettings const& settings, TextWay const& way)
      : path_(path), settings_(settings), input_(open(path, names(settings))) {
    read.block_size = static_cast<std::int32_t>(way.block_bytes);
    std::vector<JsonColumn> columns;
    std::vector<std::string> const dotted = dotted_keys();
    for (auto const& [column, type] : settings.types) {
      JsonColumn each{.keys = {}, .type = type};
      bool const whole = std::find(dotted.begin(), dotted.end(), column) != dotted.end();
      for (std::size_t begin = 0; begin <= column.size();) {
        std::size_t const end =
            whole ? column.size() : std::min(column.find('.', begin), column.size());
        each.keys.push_back(column.substr(begin, end - begin));
        begin = end + 1;
      }
      columns.push_back(std::move(each));
    }
    if (!columns.empty()) {
      parse.explicit_schema = ::arrow::schema(json_fields(columns, path.string()));
    }
  }

  std::shared_ptr<ShallowJson> const& input() const { return input_; }

  /// DataError for an integer so far that is another number in its column.
  void require_digits(::arrow::Schema const& schema) const {
    for (auto const& [column, integer] : input_->integers()) {
      auto const field = schema.GetFieldByName(column);
      if (!field || settings_.types.contains(column)) continue;
      auto const* const items = arrow_items(*field->type());
      if ((items ? items : field->type().get())->id() != ::arrow::Type::DOUBLE) continue;
      inexact_number(
          path_.string() + ", line " + std::to_string(integer.line) + ", column " + column,
          integer.digits,
          "Write such numbers as strings; or give the column the type ColumnType::real in "
          "`types` to have them rounded.");
    }
  }

  /// SettingsError for a column of `types` that no line has. Arrow makes one of nulls.
  void require_columns(std::vector<std::string> columns) const {
    auto const missing = [&](std::string const& column) {
      if (!settings_.types.contains(column)) return false;
      auto const seen = input_->seen(column);
      return !seen.key && !seen.field;
    };
    std::erase_if(columns, missing);
    for (auto const& [column, type] : settings_.types) {
      if (missing(column)) require_column(column, columns, path_.string() + ", `types`");
    }
  }

  ::arrow::json::ReadOptions read = ::arrow::json::ReadOptions::Defaults();
  ::arrow::json::ParseOptions parse = ::arrow::json::ParseOptions::Defaults();

 private:
  static std::vector<std::string> names(JsonlSettings const& settings) {
    std::vector<std::string> names;
    for (auto const& [column, type] : settings.types) names.push_back(column);
    return names;
  }

  static std::shared_ptr<ShallowJson> open(std::filesystem::path const& path,
                                           std::vector<std::string> const& watched) {
    return std::make_shared<ShallowJson>(open_text(path), watched);
  }

  /// The names with a dot that are keys as they are, and no fields of objects, in the first MiB.
  std::vector<std::string> dotted_keys() const {
    std::vector<std::string> dotted = names(settings_);
    std::erase_if(dotted, [](std::string const& name) { return name.find('.') == name.npos; });
    if (dotted.empty()) return dotted;
    auto const head = open(path_, dotted);
    static_cast<void>(head->Read(std::int64_t{1} << 20));  // what is wrong with it, the reader says
    std::erase_if(dotted, [&](std::string const& name) {
      JsonDepth::Seen const seen = head->seen(name);
      return !seen.key || seen.field;
    });
    return dotted;
  }

  std::filesystem::path path_;
  JsonlSettings const& settings_;
  std::shared_ptr<ShallowJson> input_;
};

}  // namespace detail

/// Reads a JSONL file into memory, with Arrow. Numbers are integers or floats, strings texts, or
/// times if all look like "2026-01-31 12:00:00" (integers in seconds); arrays of numbers or strings
/// are lists. Fields of an object within the object have names with a dot, in `types` as well. A
/// field that a line lacks is null.
///
/// Errors  DataError: a missing file, a line that is no object, a value of another type than those
///         before, an integer that would be rounded to another one (beyond int64, or beyond 2^53
///         among fractions), more than 64 levels of arrays and objects. SettingsError for a file
///         above most_bytes, for an unknown column, in `types` too, and for one whose type no cell
///         holds. EmptySourceError for a file without rows.
inline TableSet read_jsonl(std::filesystem::path const& path, JsonlSettings const& settings = {}) {
  std::string const where = path.string();
  detail::require_small(path, settings.most_bytes, "JsonlSettings", "jsonl_to_parquet");
  constexpr char const* what = "the JSONL file cannot be read";
  detail::BlockedSignals const blocked;  // threads that Arrow starts take no signals
  auto const read = [&](detail::TextWay const& way) {
    detail::JsonlReading const file(path, settings, way);
    auto const reader =
        detail::text_value(::arrow::json::TableReader::Make(::arrow::default_memory_pool(),
                                                            file.input(), file.read, file.parse),
                           where);
    auto table = detail::flat(detail::text_value(reader->Read(), where), where);
    file.require_columns(table->ColumnNames());
    table = detail::chosen(table, settings.columns, where);
    file.require_digits(*table->schema());
    return table;
  };
  auto table = detail::read_text(path, settings.most_record_bytes, settings.most_bytes, what, read);
  return detail::table_set(std::move(table), {}, where, detail::file_identity(path));
}

/// Writes a JSONL file of any size as Parquet, block by block. Columns and types are those of the
/// first MiB, and of `types`. Returns the rows. The Parquet file must not exist.
///
/// Errors  those of read_jsonl, most_bytes aside, and those of ParquetWriter.
inline std::uint64_t jsonl_to_parquet(std::filesystem::path const& from,
                                      std::filesystem::path const& to,
                                      JsonlSettings const& settings = {},
                                      ParquetWriterSettings const& writer = {}) {
  std::string const where = from.string();
  constexpr char const* what = "the JSONL file cannot be read";
  detail::BlockedSignals const blocked;
  auto const convert = [&](detail::TextWay const& way) {
    detail::JsonlReading const file(from, settings, way);
    auto const reader = detail::text_value(
        ::arrow::json::StreamingReader::Make(file.input(), file.read, file.parse), where);
    return detail::to_parquet(
        *reader, settings.columns, where, what, to, writer,
        [&](::arrow::RecordBatch const& batch, std::uint64_t) {
          file.require_digits(*batch.schema());
        },
        [&] {
          auto const schema = detail::flat(
              detail::arrow_value(::arrow::Table::MakeEmpty(reader->schema()), where, what), where);
          file.require_columns(schema->ColumnNames());
        });
  };
  return detail::read_text(from, settings.most_record_bytes, 0, what, convert);
}

}  // namespace frugal
