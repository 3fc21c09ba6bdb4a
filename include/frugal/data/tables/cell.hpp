// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/error.hpp>
#include <frugal/store/dtype.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>
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

/// The kind of a cell in words.
inline char const* cell_kind(Cell const& cell) {
  constexpr char const* kinds[] = {
      "null", "a boolean",         "an integer",     "a floating-point number",
      "text", "a list of numbers", "a list of texts"};
  static_assert(std::size(kinds) == std::variant_size_v<Cell>);
  return kinds[cell.index()];
}

namespace detail {

/// The unsigned integer of a file as a cell, or DataError if int64 does not hold it.
inline Cell unsigned_cell(std::uint64_t value, std::string const& where) {
  if (value > static_cast<std::uint64_t>(INT64_MAX)) {
    throw DataError({.what = "an unsigned integer is above the range of int64",
                     .where = where,
                     .why = "it is " + std::to_string(value),
                     .fix = "Write the column as int64, or as text."});
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
