// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include <frugal/inline.hpp>

namespace frugal::detail {

/// Seconds per step in this process, from the end of its first step, which also sets up memory and
/// kernels. Validations and saves are included: a run waits and pays for them.
class StepPace {
 public:
  /// After some step: `count` steps are made, and it is `now` on any clock of seconds. Where a
  /// Rollback has gone back since the last call, neither steps nor time since then count.
  FRUGAL_INLINE void step(std::uint64_t count, double now) {
    if (last_ && count == last_->count) return;
    if (last_ && count > last_->count) {
      steps_ += count - last_->count;
      seconds_ += now - last_->at;
    }
    last_ = Mark{count, now};
  }

  /// The steps that the pace is the mean of.
  std::uint64_t steps() const { return steps_; }
  /// Until `total` steps are made; nothing before there is a pace.
  FRUGAL_INLINE std::optional<double> seconds_left(std::optional<std::uint64_t> total,
                                                   std::uint64_t done) const {
    if (!total || steps_ == 0) return {};
    if (done >= *total) return 0;
    return static_cast<double>(*total - done) * seconds_ / static_cast<double>(steps_);
  }

 private:
  struct Mark {
    std::uint64_t count;
    double at;
  };
  std::optional<Mark> last_;
  double seconds_ = 0;
  std::uint64_t steps_ = 0;
};

}  // namespace frugal::detail
