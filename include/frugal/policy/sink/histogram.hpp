// SPDX-License-Identifier: Apache-2.0
// needs: tensorboard
#pragma once

#include <ATen/ATen.h>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include <frugal/policy/sink/tfevent.hpp>

namespace frugal::detail {

/// TensorBoard's usual limits: 1e-12 times powers of 1.1 to 1e20, the same below 0, and 0.
inline std::vector<double> const& histogram_limits() {
  static std::vector<double> const limits = [] {
    std::vector<double> positive;
    for (double limit = 1e-12; limit < 1e20; limit *= 1.1) positive.push_back(limit);
    std::vector<double> all;
    for (auto each = positive.rbegin(); each != positive.rend(); ++each) all.push_back(-*each);
    all.push_back(0);
    all.insert(all.end(), positive.begin(), positive.end());
    all.push_back(std::numeric_limits<double>::max());
    return all;
  }();
  return limits;
}

/// Of the tensor's finite values (those that a sparse tensor stores, the sizes of complex ones), on
/// its device; one copy of a few kilobytes to the host. Without a finite value its count is 0.
inline HistogramSummary histogram_of(at::Tensor const& tensor) {
  at::NoGradGuard const no_gradients;
  std::vector<double> const& limits = histogram_limits();
  auto const buckets = static_cast<std::int64_t>(limits.size());
  at::Tensor const stored =
      tensor.is_sparse() ? tensor.detach().coalesce().values() : tensor.detach();
  at::Tensor flat = (stored.is_complex() ? stored.abs() : stored).reshape({-1}).to(at::kDouble);
  flat = flat.masked_select(flat.isfinite());
  HistogramSummary summary;
  if (flat.numel() == 0) return summary;
  at::Tensor const edges = at::tensor(limits, at::kDouble).to(flat.device());
  // The bucket of a value has the first limit that is greater.
  at::Tensor const index = at::bucketize(flat, edges, false, true).clamp_max(buckets - 1);
  at::Tensor const found =
      at::cat({at::stack({flat.min(), flat.max(), flat.sum(), flat.square().sum()}),
               at::bincount(index, {}, buckets).to(at::kDouble)})
          .cpu();
  auto const* const value = static_cast<double const*>(found.const_data_ptr());
  summary.min = value[0];
  summary.max = value[1];
  summary.sum = value[2];
  summary.sum_of_squares = value[3];
  summary.count = static_cast<double>(flat.numel());
  double const* const counts = value + 4;
  std::size_t first = 0;
  std::size_t last = limits.size() - 1;
  while (counts[first] == 0) ++first;
  while (counts[last] == 0) --last;
  // An empty bucket before the first tells where that one begins.
  if (first != 0) --first;
  for (std::size_t i = first; i <= last; ++i) {
    summary.limits.push_back(limits[i]);
    summary.counts.push_back(counts[i]);
  }
  return summary;
}

}  // namespace frugal::detail
