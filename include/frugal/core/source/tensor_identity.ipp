// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/core/source/tensor_identity.hpp>

#include <frugal/core/source/each_tensor.hpp>
#include <frugal/core/source/shape_text.hpp>
#include <frugal/inline.hpp>

#include <algorithm>
#include <cstddef>

namespace frugal::detail {

FRUGAL_INLINE void TensorHash::add(at::Tensor const& tensor) {
  add(shape_text(tensor));
  // Tensors of other layouts have no bytes to read; their shape must do.
  if (!tensor.defined() || tensor.numel() == 0 || tensor.layout() != at::kStrided ||
      tensor.is_quantized()) {
    return;
  }
  if (tensor.dim() == 0) return add_bytes(tensor);
  std::int64_t const rows = tensor.size(0);
  std::int64_t const row = std::max<std::int64_t>(
      1, static_cast<std::int64_t>(tensor.element_size()) * (tensor.numel() / rows));
  std::int64_t const some = std::max<std::int64_t>(1, piece / row);
  for (std::int64_t first = 0; first < rows; first += some) {
    add_bytes(tensor.narrow(0, first, std::min(some, rows - first)));
  }
}

FRUGAL_INLINE void TensorHash::add_bytes(at::Tensor const& part) {
  at::Tensor const here = part.detach().resolve_conj().resolve_neg().cpu().contiguous();
  hash_.update({static_cast<std::byte const*>(here.const_data_ptr()), here.nbytes()});
}

FRUGAL_INLINE std::string tensor_identity(at::Tensor const& tensor) {
  TensorHash hash;
  hash.add(tensor);
  return shape_text(tensor) + ", hash " + hex_of(hash.digest());
}

}  // namespace frugal::detail
