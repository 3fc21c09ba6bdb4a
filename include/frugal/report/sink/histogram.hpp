// SPDX-License-Identifier: Apache-2.0
// needs: tensorboard
#pragma once

#include <ATen/ATen.h>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <mutex>
#include <numeric>
#include <span>
#include <vector>

#include <frugal/report/sink/tfevent.hpp>

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

/// Minimum, maximum, sum, sum of squares, and the count of each bucket.
inline HistogramSummary histogram_in(std::span<double const> row) {
  std::vector<double> const& limits = histogram_limits();
  std::span<double const> const counts = row.subspan(4);
  HistogramSummary summary;
  summary.count = std::accumulate(counts.begin(), counts.end(), 0.0);
  if (summary.count == 0) return summary;
  summary.min = row[0];
  summary.max = row[1];
  summary.sum = row[2];
  summary.sum_of_squares = row[3];
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

/// Makes histograms of tensors, each on its device. From any thread.
class Histograms {
 public:
  /// Counts the finite values of each tensor (those that a sparse one stores, the sizes of complex
  /// ones): its row on its device, 12 KB, for read(). Not defined where there are no values.
  ///
  /// The first call copies the limits to the device. A sparse tensor waits for the number of its
  /// values.
  std::vector<at::Tensor> rows_of(std::vector<at::Tensor> const& tensors) {
    at::NoGradGuard const no_gradients;
    std::vector<at::Tensor> rows(tensors.size());
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      at::Tensor const flat = values_of(tensors[i]);
      if (flat.numel() != 0) rows[i] = row_of(flat);
    }
    return rows;
  }

  /// The histograms of rows; a count of 0 tells that there were no values. One copy to the host for
  /// each device.
  static std::vector<HistogramSummary> read(std::vector<at::Tensor> const& rows) {
    std::vector<HistogramSummary> all(rows.size());
    std::vector<bool> done(rows.size(), false);
    for (std::size_t first = 0; first < rows.size(); ++first) {
      if (done[first] || !rows[first].defined()) continue;
      std::vector<at::Tensor> together;
      std::vector<std::size_t> places;
      for (std::size_t i = first; i < rows.size(); ++i) {
        if (done[i] || !rows[i].defined() || rows[i].device() != rows[first].device()) continue;
        done[i] = true;
        together.push_back(rows[i]);
        places.push_back(i);
      }
      at::Tensor const host = at::cat(together).cpu();
      std::size_t const size = static_cast<std::size_t>(host.numel()) / together.size();
      auto const* const value = static_cast<double const*>(host.const_data_ptr());
      for (std::size_t i = 0; i < together.size(); ++i) {
        all[places[i]] = histogram_in({value + i * size, size});
      }
    }
    return all;
  }

  std::vector<HistogramSummary> of(std::vector<at::Tensor> const& tensors) {
    return read(rows_of(tensors));
  }

  /// Frees the limits on devices.
  void clear() {
    std::scoped_lock const lock(guard_);
    limits_.clear();
  }

 private:
  static at::Tensor values_of(at::Tensor const& tensor) {
    at::Tensor const stored =
        tensor.is_sparse() ? tensor.detach().coalesce().values() : tensor.detach();
    return (stored.is_complex() ? stored.abs() : stored).reshape({-1}).to(at::kDouble);
  }

  /// No operator here asks the device for the size of its result, as a selection of the finite
  /// values would.
  at::Tensor row_of(at::Tensor const& flat) {
    constexpr double infinity = std::numeric_limits<double>::infinity();
    at::Tensor const limits = limits_on(flat.device());
    at::Tensor const finite = flat.isfinite();
    at::Tensor const bad = finite.logical_not();
    at::Tensor const safe = flat.masked_fill(bad, 0);
    // The bucket of a value has the first limit that is greater. Values that are not finite count
    // 0.
    at::Tensor const bucket = at::bucketize(safe, limits, /*out_int32=*/true, /*right=*/true)
                                  .clamp_max(limits.numel() - 1);
    at::Tensor counts = at::zeros({limits.numel()}, limits.options());
    counts.index_add_(0, bucket, finite.to(at::kDouble));
    return at::cat({flat.masked_fill(bad, infinity).min().reshape({1}),
                    flat.masked_fill(bad, -infinity).max().reshape({1}), safe.sum().reshape({1}),
                    safe.square().sum().reshape({1}), counts});
  }

  at::Tensor limits_on(c10::Device device) {
    std::scoped_lock const lock(guard_);
    for (at::Tensor const& each : limits_) {
      if (each.device() == device) return each;
    }
    return limits_.emplace_back(at::tensor(histogram_limits(), at::kDouble).to(device));
  }

  std::mutex guard_;
  std::vector<at::Tensor> limits_;  ///< one for each device that has been seen
};

}  // namespace frugal::detail
