// SPDX-License-Identifier: Apache-2.0
// Shapes: B rows in a batch, C columns, n numbers in a list.
#pragma once

#include <frugal/core/source/batch.hpp>
#include <frugal/core/source/data_identity.hpp>
#include <frugal/data/tables/row.hpp>
#include <frugal/error.hpp>

#include <ATen/ATen.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace frugal {

namespace detail {

/// `count` unsigned integers of the file, widened, because LibTorch computes with no others.
template <class From, class To>
at::Tensor widened(char const* bytes, std::int64_t count, at::ScalarType type,
                   std::string const& where) {
  at::Tensor out = at::empty({count}, type);
  To* const to = out.mutable_data_ptr<To>();
  for (std::int64_t i = 0; i < count; ++i) {
    From value;
    std::memcpy(&value, bytes + i * static_cast<std::int64_t>(sizeof(From)), sizeof(From));
    if constexpr (sizeof(From) == sizeof(To)) unsigned_cell(value, where);  // throws
    to[i] = static_cast<To>(value);
  }
  return out;
}

/// The type of a tensor for a type of numbers; undefined for those that are widened.
inline at::ScalarType scalar_type(Dtype dtype) {
  switch (dtype) {
    case Dtype::boolean:
      return at::kBool;
    case Dtype::u8:
      return at::kByte;
    case Dtype::i8:
      return at::kChar;
    case Dtype::i16:
      return at::kShort;
    case Dtype::f16:
      return at::kHalf;
    case Dtype::bf16:
      return at::kBFloat16;
    case Dtype::i32:
      return at::kInt;
    case Dtype::f32:
      return at::kFloat;
    case Dtype::f64:
      return at::kDouble;
    case Dtype::i64:
      return at::kLong;
    default:
      return at::ScalarType::Undefined;
  }
}

/// The type of tensors of these numbers: that of the file, or the next wider signed one.
inline at::ScalarType tensor_type(Dtype dtype) {
  if (dtype == Dtype::u16) return at::kInt;
  if (dtype == Dtype::u32 || dtype == Dtype::u64) return at::kLong;
  return scalar_type(dtype);
}

/// Packed numbers as a tensor [count] with memory of its own.
inline at::Tensor tensor_of(Dtype dtype, char const* bytes, std::int64_t count,
                            std::string const& where) {
  switch (dtype) {
    case Dtype::u16:
      return widened<std::uint16_t, std::int32_t>(bytes, count, at::kInt, where);
    case Dtype::u32:
      return widened<std::uint32_t, std::int64_t>(bytes, count, at::kLong, where);
    case Dtype::u64:
      return widened<std::uint64_t, std::int64_t>(bytes, count, at::kLong, where);
    default:
      break;
  }
  at::Tensor out = at::empty({count}, scalar_type(dtype));
  if (count > 0) std::memcpy(out.mutable_data_ptr(), bytes, out.nbytes());
  return out;
}

}  // namespace detail

inline at::Tensor Row::tensor(std::string_view column) const {
  Cell const& found = cell(column);
  if (auto const* const list = std::get_if<Numbers>(&found)) {
    return detail::tensor_of(list->dtype, list->bytes.data(),
                             static_cast<std::int64_t>(list->count()),
                             where() + ", column " + std::string(column));
  }
  if (auto const* const bytes = std::get_if<std::string>(&found)) {
    return detail::tensor_of(Dtype::u8, bytes->data(), static_cast<std::int64_t>(bytes->size()),
                             where() + ", column " + std::string(column));
  }
  if (auto const* const value = std::get_if<std::int64_t>(&found)) {
    return at::scalar_tensor(*value, at::kLong);
  }
  if (auto const* const value = std::get_if<double>(&found)) {
    if (std::isfinite(*value) && !std::isfinite(static_cast<float>(*value))) {
      throw DataError({.what = "a number is beyond the range of float32",
                       .where = where() + ", column " + std::string(column),
                       .why = "it is " + std::to_string(*value),
                       .fix = "Scale the column, or make a tensor of real()."});
    }
    return at::scalar_tensor(*value, at::kFloat);
  }
  if (auto const* const value = std::get_if<bool>(&found)) {
    return at::scalar_tensor(*value, at::kBool);
  }
  throw DataError({.what = std::string("a cell is ") + cell_kind(found) + ", and no tensor",
                   .where = where() + ", column " + std::string(column),
                   .why = "",
                   .fix = "Take text() or texts(), or skip such rows."});
}

/// The columns of a table that a Batch has. A collate function for rows, too.
///
/// One data column: lists of equal length or bytes [B, n], or numbers [B], of the type in the file.
/// Several: numbers side by side [B, C], float32. A target of integers or booleans is int64, as
/// class labels are. float64 is rounded to float32 everywhere; unsigned integers above 8 bits
/// become the next wider signed type.
///
/// Errors  SettingsError without a data column; DataError for a null, a text in place of a number,
///         lists of unlike length, an integer beyond 2^24 among several data columns, which float32
///         would round to another one, and a float64 beyond float32: with file and row.
struct BatchColumns {
  std::vector<std::string> data = {};  ///< at least one
  std::string target = {};             ///< empty: the batch's target is undefined

  void identify(DataIdentity& to) const {
    std::string text;
    for (std::string const& column : data) text += column + ", ";
    to.add("batch columns", text + "target " + (target.empty() ? "nothing" : target));
  }

  /// Stacks the columns of some rows.
  Batch operator()(std::vector<Row> const& rows) const {
    std::vector<at::Tensor> parts;
    for (std::string const& column : data) parts.push_back(column_of(rows, column));
    return batch(std::move(parts), target.empty() ? at::Tensor() : column_of(rows, target),
                 rows.empty() ? "BatchColumns" : rows.front().where() + " and others of its batch");
  }

  /// The batch of whole columns: data as above, target undefined without one. `where` is what
  /// errors call their rows.
  Batch batch(std::vector<at::Tensor> parts, at::Tensor labels,
              std::string const& where = "BatchColumns") const {
    if (parts.empty()) {
      throw SettingsError({.what = "a batch without data columns",
                           .where = "BatchColumns",
                           .why = "",
                           .fix = "Name at least one in `data`."});
    }
    for (std::size_t i = 0; i < parts.size(); ++i) {
      parts[i] = narrowed(std::move(parts[i]), where, data[i]);
    }
    if (parts.size() > 1) {
      for (std::size_t i = 0; i < parts.size(); ++i) {
        if (parts[i].dim() == 1) continue;
        throw ShapeError({.what = "a list among several data columns",
                          .where = "column " + data[i],
                          .why = "columns of numbers are put side by side, and lists are not",
                          .fix = "Give one list, or columns of numbers."});
      }
      for (std::size_t i = 0; i < parts.size(); ++i) {
        require_float32(parts[i], where, data[i]);
        parts[i] = parts[i].to(at::kFloat);
      }
    }
    if (labels.defined()) {
      labels = narrowed(std::move(labels), where, target);
      bool const counts = at::isIntegralType(labels.scalar_type(), /*includeBool=*/true);
      if (counts && labels.dim() == 1) labels = labels.to(at::kLong);
    }
    return {parts.size() == 1 ? std::move(parts[0]) : at::stack(parts, 1), std::move(labels)};
  }

 private:
  static at::Tensor narrowed(at::Tensor column, std::string const& where, std::string const& name) {
    if (column.scalar_type() != at::kDouble) return column;
    at::Tensor rounded = column.to(at::kFloat);
    // An infinity that was none before.
    at::Tensor const beyond = at::isinf(rounded).logical_and_(at::isfinite(column));
    if (beyond.any().item<bool>()) {
      throw DataError({.what = "a number is beyond the range of float32",
                       .where = where + ", column " + name,
                       .why = "it is " + c10::str(column.masked_select(beyond)[0].item<double>()),
                       .fix = "Scale the column, or make tensors of rows with a transform."});
    }
    return rounded;
  }

  /// DataError for integers of more than 24 bits, which float32 cannot tell from their neighbours.
  static void require_float32(at::Tensor const& column, std::string const& where,
                              std::string const& name) {
    bool const wide = column.scalar_type() == at::kInt || column.scalar_type() == at::kLong;
    if (!wide || column.numel() == 0) return;
    constexpr std::int64_t most = std::int64_t{1} << 24;
    auto const [least, greatest] = at::aminmax(column);
    auto const low = least.item<std::int64_t>();
    auto const high = greatest.item<std::int64_t>();
    if (low >= -most && high <= most) return;
    throw DataError({.what = "an integer does not fit among columns of float32",
                     .where = where + ", column " + name,
                     .why = "it is " + std::to_string(high > most ? high : low) +
                            ", and float32 holds the integers up to 2^24",
                     .fix = "Leave the column out of `data`, give it alone, write it as floats, or "
                            "make tensors of rows with a transform."});
  }

  static at::Tensor column_of(std::vector<Row> const& rows, std::string const& column) {
    std::vector<at::Tensor> each;
    each.reserve(rows.size());
    for (Row const& row : rows) {
      each.push_back(row.tensor(column));
      if (each.back().sizes() != each.front().sizes() ||
          each.back().scalar_type() != each.front().scalar_type()) {
        throw DataError(
            {.what = "rows of a batch have lists of unlike length or type",
             .where = row.where() + ", column " + column,
             .why = detail::shape_text(each.back()) + " after " + detail::shape_text(each.front()),
             .fix = "Pad the lists with a transform, or collate the rows with Pad."});
      }
    }
    at::Tensor column_B = at::stack(each);
    // Cells hold int64 and double; the file's type is what whole columns have.
    auto const dtype = rows.front().dtype(column);
    if (column_B.dim() != 1 || !dtype) return column_B;
    at::ScalarType const type = detail::tensor_type(*dtype);
    return type == at::kDouble ? column_B : column_B.to(type);
  }
};

}  // namespace frugal
