// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/checkpoint/dtype.hpp>
#include <frugal/error.hpp>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace frugal {

/// A list of numbers in one cell of a table, packed, of the type that the file has.
struct Numbers {
  Dtype dtype = Dtype::u8;
  std::string bytes;  ///< little-endian

  std::uint64_t count() const { return bytes.size() * 8 / dtype_bits(dtype); }
  friend bool operator==(Numbers const&, Numbers const&) = default;
};

/// What one cell of a table holds: nothing (null), a boolean, an integer, a floating-point number,
/// a text or bytes, a list of numbers, a list of texts. Integers of every width are int64, floats
/// of every width double; times are integers in the unit of their column.
using Cell = std::variant<std::monostate, bool, std::int64_t, double, std::string, Numbers,
                          std::vector<std::string>>;

/// The unit of a column of times: of points in time since 1970-01-01, of times of day, of
/// durations.
enum class TimeUnit { none, day, second, millisecond, microsecond, nanosecond };

/// What a file says about a column, beyond what its cells say.
struct ColumnFormat {
  std::optional<Dtype> dtype = {};  ///< of its numbers; empty for texts, lists, and unions of types
  TimeUnit unit = TimeUnit::none;   ///< of its times, or of the times in its lists
};

/// The kind of a cell in words.
inline char const* cell_kind(Cell const& cell) {
  constexpr char const* kinds[] = {
      "null", "a boolean",         "an integer",     "a floating-point number",
      "text", "a list of numbers", "a list of texts"};
  static_assert(std::size(kinds) == std::variant_size_v<Cell>);
  return kinds[cell.index()];
}

namespace detail {

/// Bytes that a cell takes in a table in memory, about.
inline std::uint64_t cell_bytes(Cell const& cell) {
  std::uint64_t bytes = 8;
  if (auto const* const text = std::get_if<std::string>(&cell)) bytes += text->size();
  if (auto const* const list = std::get_if<Numbers>(&cell)) bytes += list->bytes.size();
  if (auto const* const texts = std::get_if<std::vector<std::string>>(&cell)) {
    for (std::string const& text : *texts) bytes += 8 + text.size();
  }
  return bytes;
}

/// Whether a double, or a float with 24 bits, holds the integer.
inline bool fits_double(std::int64_t value, int bits = 53) {
  std::uint64_t const size =
      value < 0 ? ~static_cast<std::uint64_t>(value) + 1 : static_cast<std::uint64_t>(value);
  return size == 0 || static_cast<int>(std::bit_width(size)) - std::countr_zero(size) <= bits;
}

/// The unsigned integer of a file as a cell, or DataError if int64 does not hold it.
inline Cell unsigned_cell(std::uint64_t value, std::string const& where) {
  if (value > static_cast<std::uint64_t>(INT64_MAX)) {
    throw DataError({.what = "an unsigned integer is above the range of int64",
                     .where = where,
                     .why = "it is " + std::to_string(value),
                     .fix = "Write the column as int64, or as text; or leave it out by naming the "
                            "others in `columns`."});
  }
  return static_cast<std::int64_t>(value);
}

/// The cell of a packed number of a type whose every value is a cell: integers of up to 32 bits,
/// int64, float and double. Null for the other types.
inline Cell packed_cell(Dtype dtype, char const* bytes) {
  auto const as = [&]<class T>(T value) {
    std::memcpy(&value, bytes, sizeof(T));
    return value;
  };
  switch (dtype) {
    case Dtype::u8:
      return std::int64_t{as(std::uint8_t{})};
    case Dtype::i8:
      return std::int64_t{as(std::int8_t{})};
    case Dtype::u16:
      return std::int64_t{as(std::uint16_t{})};
    case Dtype::i16:
      return std::int64_t{as(std::int16_t{})};
    case Dtype::u32:
      return std::int64_t{as(std::uint32_t{})};
    case Dtype::i32:
      return std::int64_t{as(std::int32_t{})};
    case Dtype::i64:
      return as(std::int64_t{});
    case Dtype::f32:
      return double{as(float{})};
    case Dtype::f64:
      return as(double{});
    default:
      return {};
  }
}

}  // namespace detail

}  // namespace frugal

namespace at {
class Tensor;
}

namespace frugal {

/// What the rows of one file share: what errors call the file, and the names of its columns.
struct RowHead {
  std::string source;
  std::vector<std::string> columns;
  std::vector<ColumnFormat> formats = {};  ///< of each column; empty: not known

  /// The place of a column, if there is one of that name.
  std::optional<std::size_t> find(std::string_view column) const {
    for (std::size_t i = 0; i < columns.size(); ++i) {
      if (columns[i] == column) return i;
    }
    return std::nullopt;
  }

  /// The place of a column, or SettingsError with the columns that there are.
  std::size_t place(std::string_view column) const {
    if (auto const found = find(column)) return *found;
    std::string all;
    for (std::string const& each : columns) all += (all.empty() ? "" : ", ") + each;
    throw SettingsError({.what = "there is no column " + std::string(column),
                         .where = source,
                         .why = "the columns are " + all,
                         .fix = "Name one of them."});
  }

  /// What is known of a column; SettingsError if there is none of that name.
  ColumnFormat format(std::string_view column) const {
    std::size_t const at = place(column);
    return at < formats.size() ? formats[at] : ColumnFormat{};
  }
};

/// One row of a table: the sample of ParquetSet, TableSet and AvroSet. It owns its cells.
///
/// Errors  SettingsError for a column that the row lacks, with those that it has; DataError, with
///         file, row and column, for a null without a fallback and for a cell of another kind.
class Row {
 public:
  Row() : head_(std::make_shared<RowHead const>()) {}
  Row(std::shared_ptr<RowHead const> head, std::uint64_t number, std::vector<Cell> cells)
      : head_(std::move(head)), number_(number), cells_(std::move(cells)) {}

  /// The row of these columns and cells, for writers.
  explicit Row(std::vector<std::pair<std::string, Cell>> cells) {
    RowHead head{.source = "a row", .columns = {}};
    for (auto& [name, cell] : cells) {
      head.columns.push_back(std::move(name));
      cells_.push_back(std::move(cell));
    }
    head_ = std::make_shared<RowHead const>(std::move(head));
  }

  std::vector<std::string> const& columns() const { return head_->columns; }
  std::vector<Cell> const& cells() const { return cells_; }
  /// The row's number in its file, from 0.
  std::uint64_t number() const { return number_; }
  /// "train.parquet, row 12".
  std::string where() const { return head_->source + ", row " + std::to_string(number_); }

  Cell const& cell(std::string_view column) const { return cells_[head_->place(column)]; }
  /// The unit of a column of times, and the numbers that the file has in the column.
  TimeUnit unit(std::string_view column) const { return head_->format(column).unit; }
  std::optional<Dtype> dtype(std::string_view column) const { return head_->format(column).dtype; }
  bool is_null(std::string_view column) const { return cell(column).index() == 0; }

  std::int64_t integer(std::string_view column) const {
    return of<std::int64_t>(column, "integer");
  }
  /// Integers as well; DataError for one that a double does not hold.
  double real(std::string_view column) const {
    if (auto const* const value = std::get_if<std::int64_t>(&cell(column))) {
      if (detail::fits_double(*value)) return static_cast<double>(*value);
      throw DataError({.what = "an integer is no double",
                       .where = where() + ", column " + std::string(column),
                       .why = "it is " + std::to_string(*value) + ", and double has 53 bits",
                       .fix = "Call integer()."});
    }
    return of<double>(column, "real");
  }
  bool boolean(std::string_view column) const { return of<bool>(column, "boolean"); }
  /// A text, or bytes.
  std::string const& text(std::string_view column) const { return of<std::string>(column, "text"); }
  Numbers const& numbers(std::string_view column) const { return of<Numbers>(column, "numbers"); }
  std::vector<std::string> const& texts(std::string_view column) const {
    return of<std::vector<std::string>>(column, "texts");
  }

  /// The integer, or `fallback` for a null.
  std::int64_t integer(std::string_view column, std::int64_t fallback) const {
    return is_null(column) ? fallback : integer(column);
  }
  double real(std::string_view column, double fallback) const {
    return is_null(column) ? fallback : real(column);
  }
  bool boolean(std::string_view column, bool fallback) const {
    return is_null(column) ? fallback : boolean(column);
  }
  std::string text(std::string_view column, std::string fallback) const {
    return is_null(column) ? std::move(fallback) : text(column);
  }

  /// A list of numbers as a tensor [n] of the file's type (unsigned ones above 8 bits as the next
  /// wider signed type), bytes as a uint8 tensor [n], an integer as int64 [], a floating-point
  /// number as float32 [], rounded: DataError for one beyond its range. Copies. Include
  /// data/tables/batch_columns.hpp.
  at::Tensor tensor(std::string_view column) const;

 private:
  template <class T>
  T const& of(std::string_view column, char const* accessor) const {
    Cell const& found = cell(column);
    if (auto const* const value = std::get_if<T>(&found)) return *value;
    bool const null = found.index() == 0;
    throw DataError(
        {.what = null ? "a cell is null" : std::string("a cell is no ") + accessor,
         .where = where() + ", column " + std::string(column),
         .why = null ? "" : std::string("it is ") + cell_kind(found),
         .fix = null ? std::string("Give ") + accessor + "() a fallback, or ask is_null() first."
                     : "Call the accessor of that kind."});
  }

  std::shared_ptr<RowHead const> head_;
  std::uint64_t number_ = 0;
  std::vector<Cell> cells_;
};

}  // namespace frugal
