// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include <frugal/base/hash.hpp>
#include <frugal/data/each_tensor.hpp>
#include <frugal/data/shape_text.hpp>
#include <frugal/inline.hpp>

namespace frugal::detail {

/// Hashes tensors by type, shape and values, wherever they are and however they are strided.
///
/// Cost    memory speed on the host; from a device, and for a strided tensor, a copy of 64 MiB at a
///         time.
class TensorHash {
 public:
  FRUGAL_INLINE void add(at::Tensor const& tensor) {
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
  void add(std::string const& text) { hash_.update(std::as_bytes(std::span(text))); }

  std::uint64_t digest() const { return hash_.digest(); }

 private:
  static constexpr std::int64_t piece = std::int64_t{64} << 20;

  FRUGAL_INLINE void add_bytes(at::Tensor const& part) {
    at::Tensor const here = part.detach().resolve_conj().resolve_neg().cpu().contiguous();
    hash_.update({static_cast<std::byte const*>(here.const_data_ptr()), here.nbytes()});
  }

  Hash hash_;
};

/// "[60000, 28, 28] Byte, hash 0123456789abcdef"
FRUGAL_INLINE std::string tensor_identity(at::Tensor const& tensor) {
  TensorHash hash;
  hash.add(tensor);
  return shape_text(tensor) + ", hash " + hex_of(hash.digest());
}

}  // namespace frugal::detail
