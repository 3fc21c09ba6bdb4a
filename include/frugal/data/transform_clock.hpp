// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <utility>

// How a loader learns what part of reading a sample is transforming it.
namespace frugal::detail {

/// Where transforms of this thread add up their time. Null outside of a loader: then none reads a
/// clock.
struct TransformClock {
  double seconds = 0;
  bool runs = false;  // a transform that reads other samples is measured once
};
inline thread_local TransformClock* transform_clock = nullptr;

/// Has the transforms of this thread measured while it lives.
class [[nodiscard]] MeasuredTransforms {
 public:
  explicit MeasuredTransforms(TransformClock& clock)
      : before_(std::exchange(transform_clock, &clock)) {}
  MeasuredTransforms(MeasuredTransforms const&) = delete;
  MeasuredTransforms& operator=(MeasuredTransforms const&) = delete;
  ~MeasuredTransforms() { transform_clock = before_; }

 private:
  TransformClock* before_;
};

/// Adds the time of its life to the clock of this thread.
class [[nodiscard]] TransformSpan {
  using Clock = std::chrono::steady_clock;

 public:
  TransformSpan() : clock_(transform_clock) {
    if (clock_ == nullptr || std::exchange(clock_->runs, true)) {
      clock_ = nullptr;
    } else {
      begin_ = Clock::now();
    }
  }
  TransformSpan(TransformSpan const&) = delete;
  TransformSpan& operator=(TransformSpan const&) = delete;
  ~TransformSpan() {
    if (clock_ == nullptr) return;
    clock_->seconds += std::chrono::duration<double>(Clock::now() - begin_).count();
    clock_->runs = false;
  }

 private:
  TransformClock* clock_;
  Clock::time_point begin_{};
};

}  // namespace frugal::detail
