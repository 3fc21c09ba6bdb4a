// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/base/json_writer.hpp>
#include <frugal/base/utf8.hpp>
#include <frugal/data/shards/npy.hpp>
#include <frugal/data/shards/tar_sample.hpp>
#include <frugal/data/tables/row.hpp>
#include <frugal/error.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace frugal {

/// What a table's row becomes in a shard. A function of a Row, for a transform before `pack`.
///
/// If `fields` is given, each of these columns is a field of its own: {"image", "jpg"} for the
/// bytes of the column image. Texts and bytes are stored as they are, integers and booleans as
/// digits, other numbers as JSON, lists of numbers as arrays of NumPy, lists of texts as JSON; a
/// null is no field. Without, the whole row is one field "json", an object.
///
/// Errors  SettingsError for a column that the row lacks; DataError with row and column for bytes
///         that are no text and have no field of their own, and for a NaN or an infinity in JSON.
struct PackRow {
  struct Field {
    std::string column;
    std::string extension;
  };
  std::vector<Field> fields{};

  PackedSample operator()(Row const& row) const {
    PackedSample out;
    for (Field const& field : fields) {
      Cell const& cell = row.cell(field.column);
      if (cell.index() == 0) continue;
      out.fields.push_back({field.extension, bytes_of(row, field.column, cell)});
    }
    if (fields.empty()) out.fields.push_back({"json", object_of(row)});
    return out;
  }

 private:
  static std::string bytes_of(Row const& row, std::string const& column, Cell const& cell) {
    if (auto const* const text = std::get_if<std::string>(&cell)) return *text;
    if (auto const* const truth = std::get_if<bool>(&cell)) return *truth ? "1" : "0";
    if (auto const* const numbers = std::get_if<Numbers>(&cell)) {
      std::uint64_t const shape[] = {numbers->count()};
      return npy_header(numbers->dtype, shape) + numbers->bytes;
    }
    detail::JsonWriter out;
    append(out, row, column, cell);
    return out.str();
  }

  static std::string object_of(Row const& row) {
    detail::JsonWriter out;
    out.object();
    for (std::size_t i = 0; i < row.columns().size(); ++i) {
      out.key(row.columns()[i]);
      append(out, row, row.columns()[i], row.cells()[i]);
    }
    return out.str();
  }

  static void append(detail::JsonWriter& out, Row const& row, std::string const& column,
                     Cell const& cell) {
    auto const text = [&](std::string const& value) {
      if (!detail::is_utf8(value)) refuse(row, column, "its bytes are not UTF-8");
      out.value(value);
    };
    std::visit(
        [&](auto const& value) {
          using Value = std::remove_cvref_t<decltype(value)>;
          if constexpr (std::is_same_v<Value, std::monostate>) {
            out.raw("null");
          } else if constexpr (std::is_same_v<Value, double>) {
            append_real(out, row, column, value);
          } else if constexpr (std::is_same_v<Value, std::string>) {
            text(value);
          } else if constexpr (std::is_same_v<Value, Numbers>) {
            append_list(out, row, column, value);
          } else if constexpr (std::is_arithmetic_v<Value>) {
            out.value(value);
          } else {
            out.array();
            for (std::string const& each : value) text(each);
            out.end();
          }
        },
        cell);
  }

  static void append_real(detail::JsonWriter& out, Row const& row, std::string const& column,
                          double value) {
    if (!std::isfinite(value)) refuse(row, column, "JSON has no NaN and no infinity");
    out.value(value);
  }

  static void append_list(detail::JsonWriter& out, Row const& row, std::string const& column,
                          Numbers const& list) {
    auto const all = [&]<class T>(T) {
      out.array();
      for (std::uint64_t i = 0; i < list.count(); ++i) {
        T value;
        std::memcpy(&value, list.bytes.data() + i * sizeof value, sizeof value);
        if constexpr (std::is_floating_point_v<T>) {
          append_real(out, row, column, static_cast<double>(value));
        } else {
          out.value(value);
        }
      }
      out.end();
    };
    switch (list.dtype) {
      case Dtype::boolean:
      case Dtype::u8:
        return all(std::uint8_t{});
      case Dtype::i8:
        return all(std::int8_t{});
      case Dtype::u16:
        return all(std::uint16_t{});
      case Dtype::i16:
        return all(std::int16_t{});
      case Dtype::u32:
        return all(std::uint32_t{});
      case Dtype::i32:
        return all(std::int32_t{});
      case Dtype::u64:
        return all(std::uint64_t{});
      case Dtype::i64:
        return all(std::int64_t{});
      case Dtype::f32:
        return all(float{});
      case Dtype::f64:
        return all(double{});
      default:
        refuse(row, column,
               "JSON has no numbers of the type " + std::string(dtype_name(list.dtype)));
    }
  }

  [[noreturn]] static void refuse(Row const& row, std::string const& column, std::string why) {
    throw DataError({.what = "a cell cannot be stored as JSON",
                     .where = row.where() + ", column " + column,
                     .why = std::move(why),
                     .fix =
                         "Give the bytes or the list a field of its own: PackRow::fields, or "
                         "--field COLUMN=EXTENSION of frugal_pack; write a null for no number."});
  }
};

}  // namespace frugal
