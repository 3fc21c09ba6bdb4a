// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>

#include <cstddef>
#include <utility>
#include <vector>

#include <frugal/inline.hpp>

namespace frugal::detail {

/// Scalars of one device that stay there until all are read together, with one wait. The smallest
/// tensor takes an allocator 512 bytes, so they are packed on the device, `a_chunk` at a time.
class PackedScalars {
 public:
  static constexpr std::size_t a_chunk = 4096;

  FRUGAL_INLINE void push(at::Tensor scalar) {
    if (single_.size() == a_chunk) pack();
    single_.push_back(std::move(scalar));
  }
  /// Removes the newest.
  FRUGAL_INLINE void pop() {
    if (single_.empty()) {
      single_ = packed_.back().unbind();
      packed_.pop_back();
    }
    single_.pop_back();
  }

  /// Takes all out, oldest first, as doubles in host memory. There must be one.
  FRUGAL_INLINE at::Tensor take() {
    if (!single_.empty()) pack();
    at::Tensor const all = packed_.size() == 1 ? packed_.front() : at::cat(packed_);
    at::Tensor host = all.cpu().to(at::kDouble);
    packed_.clear();
    return host;
  }

  FRUGAL_INLINE void clear() {
    single_.clear();
    packed_.clear();
  }

 private:
  FRUGAL_INLINE void pack() {
    packed_.push_back(at::stack(single_));
    single_.clear();
  }

  std::vector<at::Tensor> packed_;  // first these,
  std::vector<at::Tensor> single_;  // then these
};

}  // namespace frugal::detail
