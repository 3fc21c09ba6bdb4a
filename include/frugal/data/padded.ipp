// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/data/padded.hpp>

#include <frugal/error.hpp>
#include <frugal/inline.hpp>

#include <cstddef>
#include <utility>

namespace frugal {

FRUGAL_INLINE PaddedRows pad(std::vector<at::Tensor> const& rows, double value,
                             std::int64_t multiple) {
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
