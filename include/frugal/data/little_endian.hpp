// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/checkpoint/dtype.hpp>  // refuses a big-endian machine

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <type_traits>
#include <vector>

// Numbers in files of frugal's own formats: little-endian, at any address.
namespace frugal::detail {

/// The number at an offset, which the caller has checked.
template <class Int>
Int load_le(std::span<std::byte const> bytes, std::uint64_t at) {
  static_assert(std::is_trivially_copyable_v<Int>);
  Int value;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

inline void append_bytes(std::vector<std::byte>& bytes, std::span<std::byte const> more) {
  bytes.insert(bytes.end(), more.begin(), more.end());
}
inline void append_text(std::vector<std::byte>& bytes, std::string_view text) {
  append_bytes(bytes, std::as_bytes(std::span(text)));
}
template <class Int>
void append_le(std::vector<std::byte>& bytes, Int value) {
  static_assert(std::is_trivially_copyable_v<Int>);
  append_bytes(bytes, std::as_bytes(std::span(&value, 1)));
}

}  // namespace frugal::detail
