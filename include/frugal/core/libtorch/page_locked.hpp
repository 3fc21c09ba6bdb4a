// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

#include <frugal/inline.hpp>

namespace frugal::detail {

/// Blocks of memory, and each tensor's byte offset in them.
struct Blocks {
  struct Slot {
    std::size_t block;
    std::size_t offset;
  };
  std::vector<std::size_t> sizes;
  std::vector<Slot> slots;
};

/// Lays out tensors of the given sizes in few blocks with little waste. LibTorch rounds page-locked
/// memory up to a power of two, so each block is the largest power of two that they fill: one block
/// per tensor would waste a third, and cost a driver call each.
FRUGAL_INLINE Blocks blocks_for(std::vector<std::size_t> const& bytes) {
  constexpr std::size_t alignment = 64;
  constexpr std::size_t small = std::size_t{1} << 20;  // not worth another block
  auto const aligned = [](std::size_t size) {
    return std::max((size + alignment - 1) / alignment, std::size_t{1}) * alignment;
  };
  std::vector<std::size_t> left(bytes.size());
  std::iota(left.begin(), left.end(), std::size_t{0});
  std::stable_sort(left.begin(), left.end(),
                   [&](std::size_t a, std::size_t b) { return bytes[a] > bytes[b]; });
  std::size_t total = 0;
  for (std::size_t const each : bytes) total += aligned(each);

  Blocks blocks{.sizes = {}, .slots = std::vector<Blocks::Slot>(bytes.size())};
  while (!left.empty()) {
    std::size_t const largest = aligned(bytes[left.front()]);
    std::size_t size = total <= small ? std::bit_ceil(total) : std::bit_floor(total);
    if (size < largest) size = std::bit_ceil(largest);
    std::size_t end = 0;
    std::vector<std::size_t> rest;
    for (std::size_t const each : left) {
      std::size_t const length = aligned(bytes[each]);
      if (end + length > size) {
        rest.push_back(each);
        continue;
      }
      blocks.slots[each] = {blocks.sizes.size(), end};
      end += length;
      total -= length;
    }
    blocks.sizes.push_back(size);
    left = std::move(rest);
  }
  return blocks;
}

/// Contiguous page-locked tensors, one like each of these.
FRUGAL_INLINE std::vector<at::Tensor> page_locked_like(std::vector<at::Tensor> const& all) {
  std::vector<std::size_t> bytes;
  bytes.reserve(all.size());
  for (at::Tensor const& each : all) bytes.push_back(each.nbytes());
  Blocks const blocks = blocks_for(bytes);
  auto const options = at::TensorOptions().device(at::kCPU).pinned_memory(true);
  std::vector<at::Tensor> memory;
  memory.reserve(blocks.sizes.size());
  for (std::size_t const size : blocks.sizes) {
    memory.push_back(at::empty({static_cast<std::int64_t>(size)}, options.dtype(at::kByte)));
  }
  std::vector<at::Tensor> made;
  made.reserve(all.size());
  for (std::size_t i = 0; i < all.size(); ++i) {
    auto const [block, offset] = blocks.slots[i];
    made.push_back(at::empty({0}, at::TensorOptions().dtype(all[i].scalar_type()))
                       .set_(memory[block].storage(),
                             static_cast<std::int64_t>(offset / all[i].itemsize()),
                             all[i].sizes()));
  }
  return made;
}

}  // namespace frugal::detail
