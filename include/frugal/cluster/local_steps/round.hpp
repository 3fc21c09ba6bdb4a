// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <vector>

#include <frugal/core/run/window_phases.hpp>

namespace frugal::detail {

/// How much each process has trained since the last outer step: the weights of its losses, which all
/// processes know of all.
class LocalRound {
 public:
  LocalRound(std::size_t processes, std::size_t micro_batches)
      : each_(micro_batches), round_(processes), window_(processes) {}

  /// The losses of a window, of `micro_batches` for each process but the last ones.
  void set_window(std::vector<MicroBatchRecord> const& records) {
    std::fill(window_.begin(), window_.end(), 0.0);
    for (std::size_t i = 0; i < records.size(); ++i) window_[i / each_] += records[i].weight;
  }
  double in_window(int rank) const { return window_[static_cast<std::size_t>(rank)]; }
  double in_window() const { return sum(window_); }

  /// The window was a step.
  void count_window() {
    for (std::size_t rank = 0; rank < round_.size(); ++rank) round_[rank] += window_[rank];
  }
  /// Whether processes have weights of their own.
  bool is_open() const { return is_open(round_); }
  void close() { std::fill(round_.begin(), round_.end(), 0.0); }

  /// To save and to load; one number for each process.
  std::vector<double>& weights() { return round_; }
  static bool is_open(std::vector<double> const& weights) {
    return std::any_of(weights.begin(), weights.end(), [](double each) { return each != 0; });
  }
  /// What the weights of each process count for in the mean.
  static std::vector<double> shares_of(std::vector<double> weights) {
    double const all = sum(weights);
    for (double& each : weights) each /= all;
    return weights;
  }

 private:
  static double sum(std::vector<double> const& weights) {
    return std::accumulate(weights.begin(), weights.end(), 0.0);
  }

  std::size_t each_;
  std::vector<double> round_, window_;
};

}  // namespace frugal::detail
