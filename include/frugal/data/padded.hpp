// SPDX-License-Identifier: Apache-2.0
// Shapes: B samples, T positions of the longest (or more), ... whatever one position has.
#pragma once

#include <ATen/ATen.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <frugal/data/batch.hpp>
#include <frugal/data/host_counts.hpp>
#include <frugal/data/labels.hpp>
#include <frugal/data/named_tensors.hpp>
#include <frugal/error.hpp>
#include <frugal/inline.hpp>

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
FRUGAL_INLINE PaddedRows pad(std::vector<at::Tensor> const& rows, double value = 0,
                             std::int64_t multiple = 1) {
  if (multiple < 1) {
    throw SettingsError({.what = "rows are padded to a multiple of " + std::to_string(multiple),
                         .where = "pad",
                         .why = "",
                         .fix = "Give 1 for the longest row, or more."});
  }
  if (rows.empty()) {
    throw EmptySourceError({.what = "there are no rows to pad",
                            .where = "pad",
                            .why = "",
                            .fix = "Give at least one."});
  }
  at::Tensor const lengths =
      at::empty({static_cast<std::int64_t>(rows.size())}, at::TensorOptions(at::kLong));
  auto* const length = static_cast<std::int64_t*>(lengths.mutable_data_ptr());
  std::int64_t longest = 0;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    length[i] = rows[i].size(0);
    longest = std::max(longest, length[i]);
  }
  std::int64_t const whole = (longest + multiple - 1) / multiple * multiple;
  at::Tensor padded = at::pad_sequence(rows, /*batch_first=*/true, value);
  if (whole > longest) {
    std::vector<std::int64_t> more(2 * static_cast<std::size_t>(padded.dim() - 1), 0);
    more.back() = whole - longest;  // pairs from the last dimension on: after the positions
    padded = at::constant_pad_nd(padded, more, value);
  }
  at::Tensor mask = at::arange(whole, at::kLong).unsqueeze(0).lt(lengths.unsqueeze(1));
  if (!padded.is_cpu()) mask = mask.to(padded.device(), /*non_blocking=*/true);
  return {std::move(padded), std::move(mask), lengths};
}

}  // namespace frugal
