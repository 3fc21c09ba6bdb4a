// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/data/text/token_transform.hpp>

#include <frugal/error.hpp>
#include <frugal/inline.hpp>

#include <algorithm>

namespace frugal {

FRUGAL_INLINE at::Tensor token_tensor(std::span<std::int32_t const> ids, at::ScalarType type) {
  at::Tensor made = at::empty({static_cast<std::int64_t>(ids.size())}, at::TensorOptions(type));
  if (type == at::kLong) {
    std::copy(ids.begin(), ids.end(), static_cast<std::int64_t*>(made.mutable_data_ptr()));
  } else if (type == at::kInt) {
    std::copy(ids.begin(), ids.end(), static_cast<std::int32_t*>(made.mutable_data_ptr()));
  } else {
    throw DtypeError({.what = std::string("token ids as ") + c10::toString(type),
                      .where = "token_tensor",
                      .why = "an embedding takes int64 or int32",
                      .fix = "Give at::kLong or at::kInt."});
  }
  return made;
}

}  // namespace frugal
