// SPDX-License-Identifier: Apache-2.0
// needs: arrow
#pragma once

#include <frugal/core/source/data_identity.hpp>
#include <frugal/data/arrow/table.hpp>
#include <frugal/data/file_identity.hpp>
#include <frugal/data/tables/row.hpp>
#include <frugal/error.hpp>

#include <arrow/table.h>
#include <arrow/type.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace frugal {

/// The rows of a table in memory, a SampleSet: what read_csv and read_jsonl give. Copies share it.
class TableSet {
 public:
  /// `reading`: the settings that decide how the file became values.
  TableSet(detail::ArrowTable table, std::string identity, std::string reading = {})
      : table_(std::make_shared<detail::ArrowTable const>(std::move(table))),
        identity_(std::move(identity)),
        reading_(std::move(reading)) {
    if (!reading_.empty()) identity_ += " read with " + reading_;
  }

  std::uint64_t size() const { return table_->rows(); }
  Row get(std::uint64_t index) const { return table_->row(index); }
  std::string name(std::uint64_t index) const {
    return table_->head().source + ", row " + std::to_string(index);
  }
  std::string const& identity() const { return identity_; }

  /// The content of the file that it was read from, wherever that lies; else identity(). And the
  /// columns with their types.
  void identify(DataIdentity& to) const {
    std::filesystem::path const source = table_->head().source;
    std::error_code ignored;
    if (std::filesystem::is_regular_file(source, ignored)) {
      detail::FilesIdentity file(1, detail::ReadOf::whole);
      file.add(source);
      file.identify(to);
    } else {
      to.add("data", identity_);
    }
    std::string text;
    for (std::size_t i = 0; i < columns().size(); ++i) {
      text += (i == 0 ? "" : ", ") + columns()[i] + " " + table_->column(i)->type()->ToString();
    }
    to.add("columns", text);
    if (!reading_.empty()) to.add("reading", reading_);
  }

  std::vector<std::string> const& columns() const { return table_->head().columns; }
  /// The unit of a column of times.
  TimeUnit unit(std::string_view column) const { return table_->head().format(column).unit; }
  /// In memory.
  std::uint64_t bytes() const { return table_->bytes(); }
  detail::ArrowTable const& table() const { return *table_; }

 private:
  std::shared_ptr<detail::ArrowTable const> table_;
  std::string identity_;
  std::string reading_;
};

/// The type of a column of a text file. The last six are dates and times as integers: days, or
/// seconds and so on, since 1970-01-01 UTC.
enum class ColumnType {
  integer,
  real,
  boolean,
  text,
  days,
  seconds,
  milliseconds,
  microseconds,
  nanoseconds
};

namespace detail {

/// `zoned`: times have an offset from UTC, or "Z".
inline std::shared_ptr<::arrow::DataType> arrow_type(ColumnType type, bool zoned = false) {
  auto const time = [&](::arrow::TimeUnit::type unit) {
    return zoned ? ::arrow::timestamp(unit, "UTC") : ::arrow::timestamp(unit);
  };
  switch (type) {
    case ColumnType::integer:
      return ::arrow::int64();
    case ColumnType::real:
      return ::arrow::float64();
    case ColumnType::boolean:
      return ::arrow::boolean();
    case ColumnType::days:
      return ::arrow::date32();
    case ColumnType::seconds:
      return time(::arrow::TimeUnit::SECOND);
    case ColumnType::milliseconds:
      return time(::arrow::TimeUnit::MILLI);
    case ColumnType::microseconds:
      return time(::arrow::TimeUnit::MICRO);
    case ColumnType::nanoseconds:
      return time(::arrow::TimeUnit::NANO);
    case ColumnType::text:
      break;
  }
  return ::arrow::utf8();
}

/// SettingsError for a file that is too large to be read into memory.
inline void require_small(std::filesystem::path const& path, std::uint64_t most,
                          char const* settings, char const* convert) {
  std::error_code error;
  std::uint64_t const size = std::filesystem::file_size(path, error);
  if (error || size <= most) return;
  throw SettingsError({.what = "the file is too large to be read into memory",
                       .where = path.string(),
                       .why = "it has " + std::to_string(size) + " bytes, and " + settings +
                              "::most_bytes is " + std::to_string(most),
                       .fix = std::string("Call ") + convert +
                              " once, which takes little memory, and open the result with "
                              "ParquetSet; or raise most_bytes."});
}

/// Fields of objects as columns with names with a dot, "box.width".
inline std::shared_ptr<::arrow::Table> flat(std::shared_ptr<::arrow::Table> table,
                                            std::string const& where) {
  auto const nested = [&] {
    ::arrow::FieldVector const& fields = table->schema()->fields();
    return std::any_of(fields.begin(), fields.end(), [](auto const& field) {
      return field->type()->id() == ::arrow::Type::STRUCT;
    });
  };
  while (nested()) {
    table = arrow_value(table->Flatten(), where, "the objects of the file cannot be read");
  }
  return table;
}

/// DataError if several columns of the table have this name: a row would give the first alone.
inline void require_one(::arrow::Table const& table, std::string const& column,
                        std::string const& where) {
  if (table.schema()->GetAllFieldIndices(column).size() < 2) return;
  throw DataError({.what = "two columns have one name",
                   .where = where,
                   .why = "both are called " + column,
                   .fix = "Rename one of them, or leave them out by naming others in `columns`."});
}

/// SettingsError for a column that a setting names and the file lacks.
inline void require_column(std::string const& column, std::vector<std::string> const& all,
                           std::string const& where) {
  static_cast<void>(RowHead{.source = where, .columns = all}.place(column));
}

/// The table's columns of those names, in their order; all if there are none.
inline std::shared_ptr<::arrow::Table> chosen(std::shared_ptr<::arrow::Table> const& table,
                                              std::vector<std::string> const& columns,
                                              std::string const& where) {
  for (std::string const& column : columns.empty() ? table->ColumnNames() : columns) {
    require_one(*table, column, where);
  }
  if (columns.empty()) return table;
  std::vector<int> places;
  for (std::string const& column : columns) {
    places.push_back(table->schema()->GetFieldIndex(column));
    if (places.back() < 0) require_column(column, table->ColumnNames(), where);
  }
  return arrow_value(table->SelectColumns(places), where, "columns cannot be chosen");
}

/// A set of the table's columns of those names. EmptySourceError for one without rows.
inline TableSet table_set(std::shared_ptr<::arrow::Table> table,
                          std::vector<std::string> const& columns, std::string const& where,
                          std::string identity, std::string reading = {}) {
  table = chosen(flat(std::move(table), where), columns, where);
  if (table->num_rows() == 0) {
    throw EmptySourceError({.what = "the file has no rows",
                            .where = where,
                            .why = "",
                            .fix = "Give at least one row."});
  }
  RowHead head = arrow_head(where, *table->schema());
  for (auto const& field : table->schema()->fields()) identity += ' ' + field->ToString();
  return {ArrowTable(*table, std::make_shared<RowHead const>(std::move(head)), 0),
          std::move(identity), std::move(reading)};
}

}  // namespace detail

}  // namespace frugal
