// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string_view>

namespace frugal {

static_assert(std::endian::native == std::endian::little,
              "frugal: stored tensors are little-endian and are used in place, so a big-endian "
              "machine cannot read them. Build for a little-endian target.");

/// Element types of stored tensors, ordered by alignment, and among equals in the order of the
/// format's reference implementation: files are laid out by it, from the last to the first.
///
/// Source  github.com/huggingface/safetensors, safetensors/src/tensor.rs, `Dtype`; the narrow
///         floats are those of the OCP Microscaling Formats specification 1.0.
enum class Dtype : std::uint8_t {
  boolean,
  f4,
  f6_e2m3,
  f6_e3m2,
  u8,
  i8,
  f8_e5m2,
  f8_e4m3,
  f8_e8m0,
  f8_e4m3fnuz,
  f8_e5m2fnuz,
  i16,
  u16,
  f16,
  bf16,
  i32,
  u32,
  f32,
  c64,
  f64,
  i64,
  u64,
};

namespace detail {

struct DtypeCard {
  std::string_view name;
  unsigned bits;
};

/// In the order of Dtype.
inline constexpr std::array<DtypeCard, 22> dtype_cards{{
    {"BOOL", 8},        {"F4", 4},      {"F6_E2M3", 6}, {"F6_E3M2", 6}, {"U8", 8},
    {"I8", 8},          {"F8_E5M2", 8}, {"F8_E4M3", 8}, {"F8_E8M0", 8}, {"F8_E4M3FNUZ", 8},
    {"F8_E5M2FNUZ", 8}, {"I16", 16},    {"U16", 16},    {"F16", 16},    {"BF16", 16},
    {"I32", 32},        {"U32", 32},    {"F32", 32},    {"C64", 64},    {"F64", 64},
    {"I64", 64},        {"U64", 64},
}};
static_assert(dtype_cards.size() == static_cast<std::size_t>(Dtype::u64) + 1);

}  // namespace detail

/// The type's name in a safetensors header, such as "F32".
constexpr std::string_view dtype_name(Dtype dtype) {
  return detail::dtype_cards[static_cast<std::size_t>(dtype)].name;
}

/// The type with that name, or nothing. Case-sensitive.
constexpr std::optional<Dtype> dtype_of(std::string_view name) {
  for (std::size_t i = 0; i < detail::dtype_cards.size(); ++i) {
    if (detail::dtype_cards[i].name == name) return static_cast<Dtype>(i);
  }
  return std::nullopt;
}

/// Bits of one element: 4 or 6 for packed types, a multiple of 8 for all others.
constexpr unsigned dtype_bits(Dtype dtype) {
  return detail::dtype_cards[static_cast<std::size_t>(dtype)].bits;
}

/// Alignment of an element's address, in bytes. A complex number is two floats.
constexpr std::size_t dtype_alignment(Dtype dtype) {
  if (dtype == Dtype::c64) return 4;
  return dtype_bits(dtype) <= 8 ? 1 : dtype_bits(dtype) / 8;
}

/// Size of a tensor in bits, or nothing if it exceeds 64 bits. A shape without extents is a scalar.
/// An extent of 0 makes a tensor empty, but overflow of the other extents is still refused: strides
/// are products of extents too.
constexpr std::optional<std::uint64_t> tensor_bits(Dtype dtype,
                                                   std::span<std::uint64_t const> shape) {
  std::uint64_t bits = dtype_bits(dtype);
  bool empty = false;
  for (std::uint64_t const extent : shape) {
    if (extent == 0) {
      empty = true;
    } else if (bits > std::numeric_limits<std::uint64_t>::max() / extent) {
      return std::nullopt;
    } else {
      bits *= extent;
    }
  }
  return empty ? 0 : bits;
}

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
