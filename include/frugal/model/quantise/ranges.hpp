// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

namespace frugal {

/// The numbers that 8 bits represent; those outside are clipped.
struct Range {
  double low = 0, high = 0;
};

/// How often numbers were seen, in bins of equal width over a range. As numpy.histogram counts.
struct Histogram {
  std::vector<double> counts;
  Range over;

  double edge(std::size_t bin) const {
    double const share = static_cast<double>(bin) / static_cast<double>(counts.size());
    return over.low + (over.high - over.low) * share;
  }
};

// The rules that find a layer's input range from what it has seen.

/// The range from the least to the largest number.
struct MinMax {
  static constexpr bool symmetric = false;
  static constexpr std::size_t bins = 0;  ///< of its histogram; 0: needs none
};

/// Leaves out a share of the numbers at the ends, so that outliers do not coarsen all others.
struct Percentile {
  static constexpr bool symmetric = false;
  static constexpr std::size_t bins = 2048;
  double percent = 99.99;  ///< of all numbers, that stay; what is clipped is half at each end

  Range range(Histogram const& seen) const;
};

/// Clips where the numbers that are left lose the least information (Kullback-Leibler divergence).
///
/// Source  Migacz, "8-bit inference with TensorRT" (GTC 2017), as ONNX Runtime computes it.
struct Entropy {
  static constexpr bool symmetric = true;
  static constexpr std::size_t bins = 2048;
  static constexpr std::size_t levels = 128;

  Range range(Histogram const& seen) const;

 private:
  /// Of what 8 bits make of the bins from `begin` to `end`, from what these are when the rest is
  /// clipped to their ends.
  static double divergence(std::vector<double> const& counts, std::size_t begin, std::size_t end);

  /// Moves a little to empty bins, of which there is no logarithm. False if all are empty.
  static bool smooth(std::vector<double>& counts);
};

namespace detail {

/// What one layer's input was: first its range, then a histogram over that range.
class SeenInput {
 public:
  void extend(at::Tensor const& input);

  void count(at::Tensor const& input, std::size_t bins, bool symmetric);

  bool any() const { return any_; }
  bool finite() const { return finite_; }

  template <class Ranges>
  Range range([[maybe_unused]] Ranges const& rule) const {
    if constexpr (Ranges::bins != 0) {
      if (seen_.over.low < seen_.over.high) {
        Range const found = rule.range(seen_);
        return {std::max(found.low, low_), std::min(found.high, high_)};
      }
    }
    return {low_, high_};
  }

 private:
  double low_ = std::numeric_limits<double>::infinity();
  double high_ = -std::numeric_limits<double>::infinity();
  bool any_ = false;
  bool finite_ = true;
  Histogram seen_;
};

}  // namespace detail
}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/model/quantise/ranges.ipp>
#endif
