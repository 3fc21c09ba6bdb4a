// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/data/shards/npy_tensor.hpp>

#include <frugal/data/tensor_dtype.hpp>
#include <frugal/error.hpp>
#include <frugal/inline.hpp>

#include <cstdint>
#include <cstring>
#include <vector>

namespace frugal {

FRUGAL_INLINE at::Tensor to_tensor(NpyArray const& array) {
  auto const dtype = detail::torch_type(array.dtype);
  if (!dtype) {
    throw DataError({.what = "an array of a type that LibTorch does not have",
                     .where = "to_tensor",
                     .why = "",
                     .fix = "Give one that read_npy returned."});
  }
  at::Tensor out = at::empty(std::vector<std::int64_t>(array.shape.begin(), array.shape.end()),
                             at::TensorOptions().dtype(*dtype));
  if (!array.bytes.empty()) std::memcpy(out.data_ptr(), array.bytes.data(), array.bytes.size());
  return out;
}

}  // namespace frugal
