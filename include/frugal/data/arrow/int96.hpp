// SPDX-License-Identifier: Apache-2.0
// needs: arrow
#pragma once

#include <frugal/data/tables/cell.hpp>
#include <frugal/error.hpp>

#include <arrow/type_fwd.h>
#include <parquet/column_reader.h>
#include <parquet/file_reader.h>
#include <parquet/schema.h>
#include <parquet/types.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

namespace frugal::detail {

/// Nanoseconds in a unit of time, and Arrow's name of the unit. SettingsError for a unit that INT96
/// cannot be read in.
struct Int96Unit {
  std::uint64_t nanoseconds = 1;
  ::arrow::TimeUnit::type arrow = ::arrow::TimeUnit::NANO;

  explicit Int96Unit(TimeUnit unit) {
    switch (unit) {
      case TimeUnit::second:
        nanoseconds = 1000000000;
        arrow = ::arrow::TimeUnit::SECOND;
        return;
      case TimeUnit::millisecond:
        nanoseconds = 1000000;
        arrow = ::arrow::TimeUnit::MILLI;
        return;
      case TimeUnit::microsecond:
        nanoseconds = 1000;
        arrow = ::arrow::TimeUnit::MICRO;
        return;
      case TimeUnit::nanosecond:
        return;
      case TimeUnit::none:
      case TimeUnit::day:
        break;
    }
    throw SettingsError({.what = "INT96 times are not read in this unit",
                         .where = "ParquetSettings::int96_unit",
                         .why = "",
                         .fix = "Set it to second, millisecond, microsecond or nanosecond."});
  }
};

/// Why an INT96 time is not exactly a number of units in an int64; null if it is. Arrow's
/// conversion wraps and cuts off without a word.
///
/// Source  Parquet's INT96: nanoseconds of the day, and the Julian day, as Impala and Spark write
///         them; day 2440588 is 1970-01-01.
inline char const* int96_fault(::parquet::Int96 const& value, Int96Unit const& unit) {
  std::uint64_t of_day = 0;
  std::memcpy(&of_day, &value.value[0], sizeof of_day);
  if (of_day % unit.nanoseconds != 0) return "it is no whole number of these units";
  std::int64_t days = std::int64_t{value.value[2]} - 2440588;
  auto const day = static_cast<std::int64_t>(std::uint64_t{86400000000000} / unit.nanoseconds);
  std::uint64_t const units = of_day / unit.nanoseconds;
  if (units >= static_cast<std::uint64_t>(day)) return "its day has more than 24 hours";
  auto rest = static_cast<std::int64_t>(units);
  if (days < 0) {  // from the end of the day, so that the first day that fits in part does
    ++days;
    rest -= day;
  }
  std::int64_t sum = 0;
  bool const wraps =
      __builtin_mul_overflow(days, day, &sum) || __builtin_add_overflow(sum, rest, &sum);
  return wraps ? "it is beyond what 64 bits hold of these units" : nullptr;
}

/// DataError for an INT96 time in a column chunk that would be read as another time.
inline void require_int96(::parquet::ColumnReader& column, Int96Unit const& unit,
                          std::string const& where) {
  auto& reader = static_cast<::parquet::Int96Reader&>(column);
  ::parquet::ColumnDescriptor const& type = *reader.descr();
  constexpr std::int64_t batch = 1024;
  std::vector<std::int16_t> defined(batch, type.max_definition_level());
  std::vector<std::int16_t> repeated(batch, 0);
  std::vector<::parquet::Int96> values(batch);
  std::int64_t row = -1;
  while (reader.HasNext()) {
    std::int64_t count = 0;
    std::int64_t const levels =
        reader.ReadBatch(batch, defined.data(), repeated.data(), values.data(), &count);
    std::size_t at = 0;
    for (std::size_t i = 0; i < static_cast<std::size_t>(levels); ++i) {
      if (repeated[i] == 0) ++row;
      if (defined[i] != type.max_definition_level()) continue;
      char const* const fault = int96_fault(values[at++], unit);
      if (!fault) continue;
      throw DataError({.what = "a time is not read",
                       .where = where + ", row " + std::to_string(row) +
                                " of the row group, column " + type.path()->ToDotString(),
                       .why = std::string(fault) + ": ParquetSettings::int96_unit",
                       .fix = "Set int96_unit to another unit, such as TimeUnit::microsecond, or "
                              "write the column as a timestamp of microseconds."});
    }
    if (levels == 0 && count == 0) break;
  }
}

}  // namespace frugal::detail
