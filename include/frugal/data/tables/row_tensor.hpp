// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/data/tables/cell.hpp>
#include <frugal/data/tables/row.hpp>
#include <frugal/error.hpp>

#include <ATen/ATen.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

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

}  // namespace frugal
