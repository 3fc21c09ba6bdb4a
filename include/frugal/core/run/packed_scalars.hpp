// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>

#include <cstddef>
#include <vector>

namespace frugal::detail {

/// Scalars of one device that stay there until all are read together, with one wait. The smallest
/// tensor takes an allocator 512 bytes, so they are packed on the device, `a_chunk` at a time.
class PackedScalars {
 public:
  static constexpr std::size_t a_chunk = 4096;

  void push(at::Tensor scalar);
  /// Removes the newest.
  void pop();

  /// Takes all out, oldest first, as doubles in host memory. There must be one.
  at::Tensor take();

  void clear();

 private:
  void pack();

  std::vector<at::Tensor> packed_;  // first these,
  std::vector<at::Tensor> single_;  // then these
};

}  // namespace frugal::detail

#ifndef FRUGAL_COMPILED
#include <frugal/core/run/packed_scalars.ipp>
#endif
