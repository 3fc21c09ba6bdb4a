// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/data/rows.hpp>

#include <frugal/inline.hpp>

#include <cstring>
#include <utility>

namespace frugal {

FRUGAL_INLINE Rows::Rows(at::Tensor tensor)
    : tensor_(std::move(tensor)),
      sizes_(tensor_.sizes().begin(), tensor_.sizes().end()),
      blocks_(tensor_.is_cpu() && tensor_.layout() == at::kStrided && tensor_.is_contiguous() &&
              !tensor_.is_quantized() && !tensor_.is_conj() && !tensor_.is_neg()) {
  if (blocks_ && tensor_.size(0) > 0) row_bytes_ = tensor_.nbytes() / count(tensor_.size(0));
}

FRUGAL_INLINE at::Tensor Rows::slice(std::int64_t first, std::int64_t n) {
  sizes_[0] = n;
  return tensor_.as_strided(sizes_, tensor_.strides(),
                            tensor_.storage_offset() + first * tensor_.stride(0));
}

FRUGAL_INLINE at::Tensor Rows::gather(std::span<std::int64_t const> indices) {
  sizes_[0] = static_cast<std::int64_t>(indices.size());
  at::Tensor out = at::empty(sizes_, tensor_.options());
  if (row_bytes_ == 0) return out;
  auto const* const from = static_cast<std::byte const*>(tensor_.const_data_ptr());
  auto* const to = static_cast<std::byte*>(out.mutable_data_ptr());
  // Below a quarter of a mebibyte per thread, waking threads costs more than copying.
  std::int64_t const grain =
      std::max<std::int64_t>(1, (std::int64_t{1} << 18) / static_cast<std::int64_t>(row_bytes_));
  at::parallel_for(0, sizes_[0], grain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      if (i + rows_ahead < end) prefetch(from + count(indices[count(i + rows_ahead)]) * row_bytes_);
      std::memcpy(to + count(i) * row_bytes_, from + count(indices[count(i)]) * row_bytes_,
                  row_bytes_);
    }
  });
  return out;
}

FRUGAL_INLINE void Rows::prefetch(std::byte const* row) const {
  for (std::size_t i = 0; i < std::min(row_bytes_, begin_bytes); i += line_bytes) {
    __builtin_prefetch(row + i);
  }
}

}  // namespace frugal
