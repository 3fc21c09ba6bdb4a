// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <frugal/checkpoint/lock.hpp>
#include <frugal/search/trials/history.hpp>

namespace frugal::detail {

/// A rung that this process is to train.
struct SearchTask {
  std::size_t trial = 0;
  std::size_t rung = 0;
  std::optional<std::uint64_t> until{};  ///< where the rung ends; nothing: the run's own end
  double seconds_before = 0;             ///< of this trial
  SearchTrial of{};
  std::shared_ptr<RunLock> claim{};  ///< held as long as it is trained
};

/// How a process has left a rung.
struct TaskOutcome {
  enum class Kind : unsigned char {
    result,     ///< the rung is ended
    failure,    ///< a result as well: out of memory, not a number
    error,      ///< it has thrown, and may be tried again
    preempted,  ///< the process is to end, or the budget is spent
  };
  Kind kind = Kind::result;
  RungResult result{};
  bool ended = false;                   ///< the run has ended by itself
  std::string text{};                   ///< of a failure or an error
  std::vector<std::string> warnings{};  ///< of the run
  double seconds = 0;                   ///< wall time
  bool by_ctrl_c = false;
  bool by_notice = false;  ///< preempted by another policy than SearchWatch, or by Settings::stop

  /// A failure or an error: the trial stays at its last rung, and its values are no numbers.
  void fail(Kind how, std::string why, SearchTask const& task, std::size_t objectives);

  /// Adds this attempt to the time of the trial, and to its cost unless CostMeter has measured that: at the price
  /// or, without one, at the rate of the trial's earlier rungs.
  void pay(SearchTask const& task, double attempt, std::optional<double> dollars_per_hour);
};

}  // namespace frugal::detail

#ifndef FRUGAL_COMPILED
#include <frugal/search/task.ipp>
#endif
