// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/policy/clip/adaptive.hpp>

#include <frugal/inline.hpp>

#include <cstdint>

namespace frugal::detail {

FRUGAL_INLINE at::Tensor unit_norms(at::Tensor const& tensor) {
  if (tensor.dim() <= 1) return at::linalg_vector_norm(tensor, 2);
  at::DimVector inputs;
  for (std::int64_t d = 1; d < tensor.dim(); ++d) inputs.push_back(d);
  return at::linalg_vector_norm(tensor, 2, at::IntArrayRef(inputs), /*keepdim=*/true);
}

}  // namespace frugal::detail
