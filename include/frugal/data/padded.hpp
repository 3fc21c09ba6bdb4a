// SPDX-License-Identifier: Apache-2.0
// Shapes: B samples, T positions of the longest (or more), ... whatever one position has.
#pragma once

#include <ATen/ATen.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include <frugal/core/source/batch.hpp>
#include <frugal/core/source/labels.hpp>
#include <frugal/data/host_counts.hpp>
#include <frugal/data/named_tensors.hpp>

namespace frugal {

/// Samples of different lengths in one batch; made by `Pad`.
///
/// The mask is on the data's device. Lengths and counts stay on the host, so that reading them does
/// not wait for a device.
struct PaddedBatch {
  at::Tensor data{};     ///< [B, T, ...]
  at::Tensor target{};   ///< [B, T, ...] padded as the data are, or [B, ...]; may be undefined
  at::Tensor mask{};     ///< [B, T] bool: true where the data are a sample's own
  at::Tensor lengths{};  ///< [B] int64 on the host: positions of each sample
  at::Tensor counts{};   ///< [B] int64 on the host: what of each sample counts in a loss
  bool target_padded = false;  ///< whether the target has positions, too
  NamedTensors fields{};       ///< [B, T, ...] padded as the data are (Pad::fields), or [B, ...]

  /// DataError if there is none of that name; says which there are.
  at::Tensor const& field(std::string const& name) const { return detail::field_in(fields, name); }

  /// The weight of a loss: labels that are not -100, or the positions if there are no labels.
  std::int64_t counted() const { return detail::host_sum(counts); }
  /// Positions that are not padding.
  std::int64_t positions() const { return detail::host_sum(lengths); }

  /// The host's tensors are not among them: they do not move.
  void each_tensor(auto&& f) { f(data, target, mask, fields); }
};

/// Tokens are positions that are not padding; a part of it has that part of the host's tensors.
template <>
struct batch_traits<PaddedBatch> {
  static std::int64_t tokens(PaddedBatch const& batch) { return batch.positions(); }
  static PaddedBatch narrow(PaddedBatch const& batch, std::int64_t begin, std::int64_t count) {
    return detail::narrow_with_counts(batch, begin, count);
  }
};

/// Rows of different lengths in one tensor.
struct PaddedRows {
  at::Tensor rows;     ///< [B, T, ...]
  at::Tensor mask;     ///< [B, T] bool, on the rows' device
  at::Tensor lengths;  ///< [B] int64 on the host
};

/// Pads rows [T_i, ...] with a value to the longest of them, or on to a multiple of a number.
/// Rows are of one type and differ in their first dimension alone (see Pad, which says what does
/// not fit). Throws SettingsError for a multiple below 1, EmptySourceError without rows.
PaddedRows pad(std::vector<at::Tensor> const& rows, double value = 0, std::int64_t multiple = 1);

}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/data/padded.ipp>
#endif
