// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/data/idx/idx_tensor.hpp>

#include <frugal/error.hpp>
#include <frugal/inline.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace frugal {

FRUGAL_INLINE at::Tensor to_tensor(IdxArray array) {
  auto const dtype = [&] {
    switch (array.type) {
      case IdxType::uint8:
        return at::kByte;
      case IdxType::int8:
        return at::kChar;
      case IdxType::int16:
        return at::kShort;
      case IdxType::int32:
        return at::kInt;
      case IdxType::float32:
        return at::kFloat;
      case IdxType::float64:
        return at::kDouble;
    }
    throw DataError({.what = "an IDX array of unknown element type",
                     .where = "to_tensor",
                     .why = "",
                     .fix = "Give one that read_idx returned."});
  }();
  std::vector<std::int64_t> const shape(array.shape.begin(), array.shape.end());
  std::byte* const data = array.data.release();
  return at::from_blob(
      data, shape, [](void* bytes) { delete[] static_cast<std::byte*>(bytes); }, dtype);
}

}  // namespace frugal
