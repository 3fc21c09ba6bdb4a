// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>

#include <cstddef>
#include <vector>

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
Blocks blocks_for(std::vector<std::size_t> const& bytes);

/// Contiguous page-locked tensors, one like each of these.
std::vector<at::Tensor> page_locked_like(std::vector<at::Tensor> const& all);

}  // namespace frugal::detail

#ifndef FRUGAL_COMPILED
#include <frugal/core/libtorch/page_locked.ipp>
#endif
