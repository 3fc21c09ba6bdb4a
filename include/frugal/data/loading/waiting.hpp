// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
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
  std::pair<std::string_view, double> slowest() const;

  StageSeconds& operator+=(StageSeconds const& other) {
    read += other.read;
    transform += other.transform;
    collate += other.collate;
    copy += other.copy;
    return *this;
  }
};

/// How long a run waited for a loader's batches, and what its workers did meanwhile.
struct LoaderReport {
  std::uint64_t steps = 0;     ///< batches that were given
  double seconds = 0;          ///< from batch to batch, added up
  double waiting_seconds = 0;  ///< of these, in next()
  StageSeconds stages{};       ///< of the batches that were given
  int workers = 0;             ///< threads; 0: batches are made in next()
  int cores = 0;               ///< that the process may use

  /// Share of the steps' time that was spent in next(), 0 to 1.
  double waiting() const { return seconds > 0 ? waiting_seconds / seconds : 0; }
  /// Share that was left for training. With an asynchronous device it is that of the host.
  double utilisation() const { return 1 - waiting(); }

  /// Below 70% utilisation what to do about it, in one sentence; empty otherwise, and in the first
  /// ten steps.
  std::string warning() const;

  /// The same of a source without stages: `reason` says why it is slow, and what to do.
  std::string warning(std::string const& reason) const;

 private:
  static std::string percent(double share) {
    return std::to_string(static_cast<int>(std::lround(100 * share))) + "%";
  }
};

namespace detail {

/// Adds up steps and the waiting in them. A step ends when a batch is given, and begins when the
/// one before was, or with the seek.
class WaitMeter {
 public:
  using Time = std::chrono::steady_clock::time_point;

  /// An epoch, or the rest of one, begins.
  void begin(Time now) { since_ = now; }
  /// A batch was asked for, and given.
  void step(Time asked, Time given);
  /// The epoch has ended: what follows is no step.
  void end() { since_.reset(); }

  void fill(LoaderReport& report) const;
  double waited() const { return waited_; }

 private:
  std::uint64_t steps_ = 0;
  double seconds_ = 0;
  double waited_ = 0;
  std::optional<Time> since_;
};

}  // namespace detail
}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/data/loading/waiting.ipp>
#endif
