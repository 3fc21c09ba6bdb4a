// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/data/loading/stages.hpp>
#include <frugal/inline.hpp>

#include <chrono>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>

namespace frugal {

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
  FRUGAL_INLINE std::string warning() const {
    auto const [stage, share] = stages.slowest();
    std::string text = "the slow stage is " + std::string(stage) + " (" + percent(share) +
                       " of the workers' time), so ";
    if (stage == "read") {
      text += "store the set in shards or on a faster disk";
    } else if (stage == "transform") {
      text += "transform the set once and store the result, or make the transform cheaper";
    } else if (stage == "collate") {
      text += "make batches with fewer and larger copies, such as Stack of tensors of one shape";
    } else {
      text += "collate with Stack, which writes to page-locked memory directly";
    }
    if (workers < cores) {
      text += ", or use more workers (LoaderSettings::workers is " + std::to_string(workers) +
              ", and there are " + std::to_string(cores) + " cores)";
    }
    return warning(text);
  }

  /// The same of a source without stages: `reason` says why it is slow, and what to do.
  FRUGAL_INLINE std::string warning(std::string const& reason) const {
    if (steps < 10 || utilisation() >= 0.7) return {};
    return "training waits for data " + percent(waiting()) + " of the time: fix the data first; " +
           reason;
  }

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
  FRUGAL_INLINE void step(Time asked, Time given) {
    ++steps_;
    seconds_ += std::chrono::duration<double>(given - since_.value_or(asked)).count();
    waited_ += std::chrono::duration<double>(given - asked).count();
    since_ = given;
  }
  /// The epoch has ended: what follows is no step.
  void end() { since_.reset(); }

  FRUGAL_INLINE void fill(LoaderReport& report) const {
    report.steps = steps_;
    report.seconds = seconds_;
    report.waiting_seconds = waited_;
  }
  double waited() const { return waited_; }

 private:
  std::uint64_t steps_ = 0;
  double seconds_ = 0;
  double waited_ = 0;
  std::optional<Time> since_;
};

}  // namespace detail
}  // namespace frugal
