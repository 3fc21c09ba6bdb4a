// SPDX-License-Identifier: Apache-2.0
// needs: arrow
// Shapes: N rows, n numbers in each list.
#pragma once

#include <frugal/data/arrow/cells.hpp>
#include <frugal/data/tables/row_tensor.hpp>
#include <frugal/error.hpp>

#include <ATen/ATen.h>

#include <arrow/array.h>
#include <arrow/buffer.h>
#include <arrow/type.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace frugal {

namespace detail {

/// A view of a buffer that keeps it.
inline at::Tensor over(std::shared_ptr<::arrow::Buffer> buffer, std::int64_t first_byte,
                       std::vector<std::int64_t> const& shape, at::ScalarType type) {
  // Nothing writes here: batches are read, as those of TensorDataset are.
  auto* const bytes = const_cast<std::uint8_t*>(buffer->data()) + first_byte;
  return at::from_blob(bytes, shape, [buffer](void*) {}, at::TensorOptions(type));
}

[[noreturn]] inline void no_tensor(std::string what, std::string const& where, std::string why,
                                   std::string fix) {
  throw DataError(
      {.what = std::move(what), .where = where, .why = std::move(why), .fix = std::move(fix)});
}

/// `count` numbers from `first` on, as a tensor [count]; a view wherever LibTorch has the type.
inline at::Tensor numbers_tensor(::arrow::Array const& values, std::int64_t first,
                                 std::int64_t count, std::string const& where) {
  auto const dtype = arrow_dtype(*values.type());
  if (!dtype) {
    no_tensor("a column is no tensor", where, "it is " + values.type()->ToString(),
              "Name a column of numbers, or of lists of equal length.");
  }
  if (values.null_count() > 0) {
    no_tensor("a column has nulls", where,
              std::to_string(values.null_count()) + " in its row group",
              "Read rows instead, whose accessors take a fallback, or fill them in the file.");
  }
  if (*dtype == Dtype::boolean) {
    Numbers const bytes = arrow_numbers(values, first, count);
    return tensor_of(*dtype, bytes.bytes.data(), count, where);
  }
  at::ScalarType const type = scalar_type(*dtype);
  auto const& buffer = values.data()->buffers[1];
  std::int64_t const at = (values.offset() + first) * (dtype_bits(*dtype) / 8);
  if (count == 0) return at::empty({0}, type == at::ScalarType::Undefined ? at::kLong : type);
  if (type != at::ScalarType::Undefined) return over(buffer, at, {count}, type);
  return tensor_of(*dtype, buffer->data_as<char>() + at, count, where);
}

/// The one length of all lists or texts of a column; its offsets say where each begins.
template <class Lists>
std::int64_t one_length(Lists const& lists, std::string const& where) {
  std::int64_t const length = lists.length() == 0 ? 0 : lists.value_length(0);
  for (std::int64_t i = 1; i < lists.length(); ++i) {
    if (lists.value_length(i) != length) {
      no_tensor("the lists of a column differ in length", where,
                "row " + std::to_string(i) + " of its row group has " +
                    std::to_string(lists.value_length(i)) + ", and the first " +
                    std::to_string(length),
                "Read rows instead, and collate them with Pad.");
    }
  }
  return length;
}

}  // namespace detail

/// A column as a tensor: numbers [N], lists or bytes of one length [N, n]. A view of Arrow's
/// memory, which it keeps, except for booleans and for unsigned integers above 8 bits, which are
/// widened: do not write into it.
///
/// Errors  DataError for texts of unlike length, lists of unlike length, and nulls.
inline at::Tensor column_tensor(::arrow::Array const& column, std::string const& where) {
  using ::arrow::Type;
  if (column.null_count() > 0) {
    detail::no_tensor(
        "a column has nulls", where, std::to_string(column.null_count()) + " in its row group",
        "Read rows instead, whose accessors take a fallback, or fill them in the file.");
  }
  std::int64_t const rows = column.length();
  auto const list = [&](auto const& lists, std::int64_t length) {
    std::int64_t const first = rows == 0 ? 0 : lists.value_offset(0);
    return detail::numbers_tensor(*lists.values(), first, rows * length, where)
        .view({rows, length});
  };
  auto const bytes = [&](auto const& texts) {
    std::int64_t const length = detail::one_length(texts, where);
    if (rows * length == 0) return at::empty({rows, length}, at::kByte);
    return detail::over(texts.value_data(), texts.value_offset(0), {rows, length}, at::kByte);
  };
  switch (column.type_id()) {
    case Type::FIXED_SIZE_LIST: {
      auto const& lists = static_cast<::arrow::FixedSizeListArray const&>(column);
      return list(lists, lists.value_length(0));
    }
    case Type::LIST: {
      auto const& lists = static_cast<::arrow::ListArray const&>(column);
      return list(lists, detail::one_length(lists, where));
    }
    case Type::LARGE_LIST: {
      auto const& lists = static_cast<::arrow::LargeListArray const&>(column);
      return list(lists, detail::one_length(lists, where));
    }
    case Type::STRING:
    case Type::BINARY:
      return bytes(static_cast<::arrow::BinaryArray const&>(column));
    case Type::LARGE_STRING:
    case Type::LARGE_BINARY:
      return bytes(static_cast<::arrow::LargeBinaryArray const&>(column));
    case Type::FIXED_SIZE_BINARY: {
      auto const& texts = static_cast<::arrow::FixedSizeBinaryArray const&>(column);
      std::int64_t const length = texts.byte_width();
      if (rows * length == 0) return at::empty({rows, length}, at::kByte);
      return detail::over(texts.data()->buffers[1], texts.offset() * length, {rows, length},
                          at::kByte);
    }
    default:
      return detail::numbers_tensor(column, 0, rows, where);
  }
}

}  // namespace frugal
