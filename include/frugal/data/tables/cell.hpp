// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/checkpoint/dtype.hpp>
#include <frugal/error.hpp>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <optional>
#include <string>
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
