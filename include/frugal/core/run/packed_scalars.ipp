// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/core/run/packed_scalars.hpp>

#include <frugal/inline.hpp>

#include <utility>

namespace frugal::detail {

FRUGAL_INLINE void PackedScalars::push(at::Tensor scalar) {
  if (single_.size() == a_chunk) pack();
  single_.push_back(std::move(scalar));
}

FRUGAL_INLINE void PackedScalars::pop() {
  if (single_.empty()) {
    single_ = packed_.back().unbind();
    packed_.pop_back();
  }
  single_.pop_back();
}

FRUGAL_INLINE at::Tensor PackedScalars::take() {
  if (!single_.empty()) pack();
  at::Tensor const all = packed_.size() == 1 ? packed_.front() : at::cat(packed_);
  at::Tensor host = all.cpu().to(at::kDouble);
  packed_.clear();
  return host;
}

FRUGAL_INLINE void PackedScalars::clear() {
  single_.clear();
  packed_.clear();
}

FRUGAL_INLINE void PackedScalars::pack() {
  packed_.push_back(at::stack(single_));
  single_.clear();
}

}  // namespace frugal::detail
