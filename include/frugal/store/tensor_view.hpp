// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/store/dtype.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace frugal {

/// A tensor in a file, or on its way into one: row-major, without gaps, little-endian. It owns
/// nothing; what it was got from has to outlive it.
struct TensorView {
  std::string_view name;
  Dtype dtype = Dtype::u8;
  std::span<std::uint64_t const> shape;  ///< without extents: a scalar
  std::span<std::byte const> bytes;

  /// Whether the elements may be used where they lie. Files are free to hold them anywhere: what is
  /// not aligned has to be copied before it is read as numbers.
  bool aligned() const {
    return reinterpret_cast<std::uintptr_t>(bytes.data()) % dtype_alignment(dtype) == 0;
  }
};

}  // namespace frugal
