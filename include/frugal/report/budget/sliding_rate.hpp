// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/inline.hpp>

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
  FRUGAL_INLINE std::optional<double> look(double hours, double amount) {
    if (count_ == 0 || hours - at(count_ - 1).hours >= window_ / 32) {
      if (count_ == samples_.size()) drop();
      samples_[(first_ + count_++) % samples_.size()] = {hours, amount};
    }
    while (count_ > 1 && hours - at(1).hours >= window_) drop();
    double const span = hours - at(0).hours;
    if (span < window_ || !(span > 0)) return {};
    return (amount - at(0).amount) / span;
  }

 private:
  struct Sample {
    double hours = 0;
    double amount = 0;
  };
  Sample const& at(std::size_t i) const { return samples_[(first_ + i) % samples_.size()]; }
  FRUGAL_INLINE void drop() {
    first_ = (first_ + 1) % samples_.size();
    --count_;
  }

  double window_;
  std::array<Sample, 64> samples_{};
  std::size_t first_ = 0;
  std::size_t count_ = 0;
};

}  // namespace frugal::detail
