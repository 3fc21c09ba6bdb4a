// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/data/tensor_dtype.hpp>
#include <frugal/inline.hpp>

namespace frugal::detail {

FRUGAL_INLINE std::optional<Dtype> stored_type(at::ScalarType type) {
  for (auto const& [torch, stored] : stored_types) {
    if (torch == type) return stored;
  }
  return std::nullopt;
}

FRUGAL_INLINE std::optional<at::ScalarType> torch_type(Dtype type) {
  for (auto const& [torch, stored] : stored_types) {
    if (stored == type) return torch;
  }
  return std::nullopt;
}

}  // namespace frugal::detail
