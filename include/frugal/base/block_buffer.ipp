// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/base/block_buffer.hpp>

#include <frugal/inline.hpp>

#include <algorithm>
#include <cstring>

namespace frugal::detail {

FRUGAL_INLINE std::span<std::byte const> BlockBuffer::take(std::span<std::byte const> bytes) {
  std::size_t const count = std::min(bytes.size(), capacity - size_);
  if (count != 0) std::memcpy(bytes_ + size_, bytes.data(), count);
  size_ += count;
  return bytes.subspan(count);
}

}  // namespace frugal::detail
