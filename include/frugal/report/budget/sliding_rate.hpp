// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <optional>

namespace frugal::detail {

/// An amount that grows with time, over the last part of it. Keeps a fixed number of samples.
class SlidingRate {
 public:
  explicit SlidingRate(double window) : window_(window) {}

  /// The mean rate over the window, or up to a 32nd longer; nothing before it is full. Both values
  /// must not fall.
  std::optional<double> look(double hours, double amount);

 private:
  struct Sample {
    double hours = 0;
    double amount = 0;
  };
  Sample const& at(std::size_t i) const { return samples_[(first_ + i) % samples_.size()]; }
  void drop();

  double window_;
  std::array<Sample, 64> samples_{};
  std::size_t first_ = 0;
  std::size_t count_ = 0;
};

}  // namespace frugal::detail

#ifndef FRUGAL_COMPILED
#include <frugal/report/budget/sliding_rate.ipp>
#endif
