// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <new>
#include <span>

namespace frugal::detail {

/// Collects written bytes into blocks fit for O_DIRECT: aligned in memory, in whole sectors.
class BlockBuffer {
 public:
  static constexpr std::size_t sector = 4096;  ///< no disk or file system needs more
  static constexpr std::size_t capacity = std::size_t{4} << 20;

  BlockBuffer() : bytes_(static_cast<std::byte*>(::operator new(capacity, alignment))) {}
  BlockBuffer(BlockBuffer const&) = delete;
  BlockBuffer& operator=(BlockBuffer const&) = delete;
  ~BlockBuffer() { ::operator delete(bytes_, alignment); }

  /// Takes as many bytes as fit, and returns the rest.
  std::span<std::byte const> take(std::span<std::byte const> bytes);

  bool full() const noexcept { return size_ == capacity; }
  std::span<std::byte const> filled() const noexcept { return {bytes_, size_}; }
  void clear() noexcept { size_ = 0; }

 private:
  static constexpr std::align_val_t alignment{sector};

  std::byte* bytes_;
  std::size_t size_ = 0;
};

}  // namespace frugal::detail

#ifndef FRUGAL_COMPILED
#include <frugal/base/block_buffer.ipp>
#endif
