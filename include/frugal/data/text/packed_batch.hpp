// SPDX-License-Identifier: Apache-2.0
// Shapes: B sequences, T positions of each.
#pragma once

#include <ATen/ATen.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <frugal/core/source/batch.hpp>
#include <frugal/data/host_counts.hpp>
#include <frugal/error.hpp>

namespace frugal {

/// The document of a position that is padding.
inline constexpr std::int64_t no_document = -1;

/// Sequences that several documents share; made by `StackPacked` from what `Packed` gives.
///
/// Lengths and counts stay on the host, so that reading them needs no device sync.
struct PackedBatch {
  at::Tensor data{};  ///< [B, T] int64: token ids
  at::Tensor
      target{};  ///< [B, T] int64: the next token of the same document; -100 if there is none
  at::Tensor documents{};  ///< [B, T] int64: 0, 1, ... along a sequence; -1 for padding
  at::Tensor
      positions{};       ///< [B, T] int64: from 0 in each document (or part of one); 0 for padding
  at::Tensor lengths{};  ///< [B] int64 on the host: positions that are not padding
  at::Tensor counts{};   ///< [B] int64 on the host: targets that are not -100

  /// Targets that are not -100: what a loss weighs.
  std::int64_t counted() const { return detail::host_sum(counts); }
  /// Positions that are not padding.
  std::int64_t tokens() const { return detail::host_sum(lengths); }

  /// The host's tensors are not among them: they do not move.
  void each_tensor(auto&& f) { f(data, target, documents, positions); }
};

/// Tokens are positions that are not padding; a part of it has that part of the host's tensors.
template <>
struct batch_traits<PackedBatch> {
  static std::int64_t tokens(PackedBatch const& batch) { return batch.tokens(); }
  static PackedBatch narrow(PackedBatch const& batch, std::int64_t begin, std::int64_t count) {
    return detail::narrow_with_counts(batch, begin, count);
  }
};

/// The collate function of packed sequences. Throws EmptySourceError for none of them.
struct StackPacked {
  PackedBatch operator()(std::vector<PackedBatch> const& sequences,
                         std::span<std::size_t const> = {}) const {
    if (sequences.empty()) {
      throw EmptySourceError({.what = "there are no sequences to stack",
                              .where = "StackPacked",
                              .why = "",
                              .fix = "Give at least one."});
    }
    auto const stacked = [&](at::Tensor PackedBatch::* member) {
      std::vector<at::Tensor> rows;
      rows.reserve(sequences.size());
      for (PackedBatch const& sequence : sequences) rows.push_back(sequence.*member);
      return at::stack(rows);
    };
    return {.data = stacked(&PackedBatch::data),
            .target = stacked(&PackedBatch::target),
            .documents = stacked(&PackedBatch::documents),
            .positions = stacked(&PackedBatch::positions),
            .lengths = stacked(&PackedBatch::lengths),
            .counts = stacked(&PackedBatch::counts)};
  }
};

/// The attention mask of packed sequences: [B, 1, T, T] bool from `documents` [B, T], true where
/// the position of a row may attend to that of a column: both in one document and, if `causal`, the
/// column's not after the row's. Block-diagonal; for scaled_dot_product_attention's `attn_mask`.
/// No row is without a true element: padding attends to padding.
at::Tensor document_mask(at::Tensor const& documents, bool causal = true);

}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/data/text/packed_batch.ipp>
#endif
