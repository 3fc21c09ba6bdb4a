// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace frugal::detail {

/// Running means of losses and of their absolute values, with a decay of 2% per loss, and the loss
/// above which there is a jump.
class LossMean {
 public:
  void add(double loss);

  double value() const { return value_; }
  /// Whether a loss exceeds `times` the mean. A multiple of a negative mean says nothing, so the
  /// distance from the mean counts, in mean absolute values. It is the same if no loss is negative.
  /// Never before there are enough losses to distinguish a jump from their variation.
  bool jumps(double loss, double times) const {
    return count_ >= 20 && loss > value_ + (times - 1) * magnitude_;
  }

  template <class Archive>
  void persist(Archive& archive) {
    archive("mean", value_);
    archive("losses", count_);
    archive("magnitude", magnitude_);
  }

 private:
  double value_ = 0;
  double magnitude_ = 0;
  std::uint64_t count_ = 0;
};

}  // namespace frugal::detail

#ifndef FRUGAL_COMPILED
#include <frugal/policy/rollback/loss_mean.ipp>
#endif
