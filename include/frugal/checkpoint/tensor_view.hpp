// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/checkpoint/dtype.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace frugal {

/// A tensor in a file, or on its way into one: row-major, contiguous, little-endian. Non-owning:
/// its source must outlive it.
struct TensorView {
  std::string_view name;
  Dtype dtype = Dtype::u8;
  std::span<std::uint64_t const> shape;  ///< empty for a scalar
  std::span<std::byte const> bytes;

  /// Whether the elements can be used in place. Files may store them at any offset; unaligned data
  /// must be copied before it is read as numbers.
  bool aligned() const {
    return reinterpret_cast<std::uintptr_t>(bytes.data()) % dtype_alignment(dtype) == 0;
  }
};

}  // namespace frugal
