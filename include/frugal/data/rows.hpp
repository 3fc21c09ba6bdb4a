// SPDX-License-Identifier: Apache-2.0
// Shapes: N rows in the tensor, B in a batch, ... whatever one row has.
#pragma once

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <utility>

#include <frugal/inline.hpp>

namespace frugal {

/// A tensor [N, ...] from which batches of rows [B, ...] are taken.
///
/// `at::index_select` on the host dispatches six operators for rows of more than one element
/// (the output, and two views of a first row that it measures strides with). Rows of a contiguous
/// host tensor are blocks of memory, so they are copied as such: one allocation, one operator
/// (`aten::empty`), the same bits. Every other tensor goes through index_select.
class Rows {
 public:
  FRUGAL_INLINE explicit Rows(at::Tensor tensor)
      : tensor_(std::move(tensor)),
        sizes_(tensor_.sizes().begin(), tensor_.sizes().end()),
        blocks_(tensor_.is_cpu() && tensor_.layout() == at::kStrided && tensor_.is_contiguous() &&
                !tensor_.is_quantized() && !tensor_.is_conj() && !tensor_.is_neg()) {
    if (blocks_ && tensor_.size(0) > 0) row_bytes_ = tensor_.nbytes() / count(tensor_.size(0));
  }

  at::Tensor const& tensor() const { return tensor_; }

  /// Rows [first, first + n), as a view.
  FRUGAL_INLINE at::Tensor slice(std::int64_t first, std::int64_t n) {
    sizes_[0] = n;
    return tensor_.as_strided(sizes_, tensor_.strides(),
                              tensor_.storage_offset() + first * tensor_.stride(0));
  }

  /// Whether `gather` wants the indices on the host or as a tensor on the rows' device.
  bool by_blocks() const { return blocks_; }

  /// The rows at the indices, each below N, in the indices' order.
  FRUGAL_INLINE at::Tensor gather(std::span<std::int64_t const> indices) {
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
        if (i + rows_ahead < end)
          prefetch(from + count(indices[count(i + rows_ahead)]) * row_bytes_);
        std::memcpy(to + count(i) * row_bytes_, from + count(indices[count(i)]) * row_bytes_,
                    row_bytes_);
      }
    });
    return out;
  }
  at::Tensor gather(at::Tensor const& index_B) const { return tensor_.index_select(0, index_B); }

 private:
  static std::size_t count(std::int64_t n) { return static_cast<std::size_t>(n); }

  // Shuffled rows are nowhere near each other, so the processor cannot foresee where the next one
  // begins; once a row is being read, it can. Measured on rows of 3 KiB: a quarter of the time.
  static constexpr std::int64_t rows_ahead = 2;
  static constexpr std::size_t begin_bytes = 512, line_bytes = 64;
  FRUGAL_INLINE void prefetch(std::byte const* row) const {
    for (std::size_t i = 0; i < std::min(row_bytes_, begin_bytes); i += line_bytes) {
      __builtin_prefetch(row + i);
    }
  }

  at::Tensor tensor_;
  at::DimVector sizes_;  // of a batch; the first is set for each
  bool blocks_;
  std::size_t row_bytes_ = 0;
};

}  // namespace frugal
