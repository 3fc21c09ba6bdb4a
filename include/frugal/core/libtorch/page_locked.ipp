// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/core/libtorch/page_locked.hpp>

#include <frugal/inline.hpp>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <numeric>

namespace frugal::detail {

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
