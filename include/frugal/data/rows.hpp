// SPDX-License-Identifier: Apache-2.0
// Shapes: N rows in the tensor, B in a batch, ... whatever one row has.
#pragma once

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

namespace frugal {

/// A tensor [N, ...] from which batches of rows [B, ...] are taken.
///
/// `at::index_select` on the host dispatches six operators for rows of more than one element
/// (the output, and two views of a first row that it measures strides with). Rows of a contiguous
/// host tensor are blocks of memory, so they are copied as such: one allocation, one operator
/// (`aten::empty`), the same bits. Every other tensor goes through index_select.
class Rows {
 public:
  explicit Rows(at::Tensor tensor);

  at::Tensor const& tensor() const { return tensor_; }

  /// Rows [first, first + n), as a view.
  at::Tensor slice(std::int64_t first, std::int64_t n);

  /// Whether `gather` wants the indices on the host or as a tensor on the rows' device.
  bool by_blocks() const { return blocks_; }

  /// The rows at the indices, each below N, in the indices' order.
  at::Tensor gather(std::span<std::int64_t const> indices);
  at::Tensor gather(at::Tensor const& index_B) const { return tensor_.index_select(0, index_B); }

 private:
  static std::size_t count(std::int64_t n) { return static_cast<std::size_t>(n); }

  // Shuffled rows are nowhere near each other, so the processor cannot foresee where the next one
  // begins; once a row is being read, it can. Measured on rows of 3 KiB: a quarter of the time.
  static constexpr std::int64_t rows_ahead = 2;
  static constexpr std::size_t begin_bytes = 512, line_bytes = 64;
  void prefetch(std::byte const* row) const;

  at::Tensor tensor_;
  at::DimVector sizes_;  // of a batch; the first is set for each
  bool blocks_;
  std::size_t row_bytes_ = 0;
};

}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/data/rows.ipp>
#endif
