// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <string_view>
#include <utility>

namespace frugal {

/// Seconds that the workers of a loader spent in each stage of making batches, added up over the
/// workers.
struct StageSeconds {
  double read = 0;       ///< get() of the set, without transforms
  double transform = 0;  ///< functions of Transformed
  double collate = 0;    ///< making a batch of samples
  double copy = 0;       ///< to page-locked memory

  double total() const { return read + transform + collate + copy; }

  /// The stage that takes the most time, and its share of the total.
  std::pair<std::string_view, double> slowest() const {
    std::pair<std::string_view, double> most{"read", read};
    if (transform > most.second) most = {"transform", transform};
    if (collate > most.second) most = {"collate", collate};
    if (copy > most.second) most = {"copy", copy};
    if (total() > 0) most.second /= total();
    return most;
  }

  StageSeconds& operator+=(StageSeconds const& other) {
    read += other.read;
    transform += other.transform;
    collate += other.collate;
    copy += other.copy;
    return *this;
  }
};

namespace detail {

/// Where transforms of this thread add up their time. Null outside of a loader: then nobody reads a
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

}  // namespace detail
}  // namespace frugal
