// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <frugal/run/counters.hpp>

namespace frugal {

/// Something that happened to the run itself and belongs into its log: a resume, a preemption, a
/// return to an earlier state. Loss and metrics are none: they have hooks.
struct Event {
  using Value = std::variant<std::uint64_t, double, std::string>;

  std::string name;                                     ///< "resume"
  std::vector<std::pair<std::string, Value>> fields{};  ///< in the order in which they are written
  Counters at{};       ///< when it was; filled in by who records it
  double seconds = 0;  ///< of training; likewise
};

/// What a resume cost.
struct Resumed {
  std::string from;                    ///< folder of the checkpoint
  std::uint64_t step = 0;              ///< optimizer steps that it has
  std::uint64_t steps_repeated = 0;    ///< steps that had been made beyond it, within a second
  double seconds_lost = 0;             ///< of training, spent on those steps
  std::vector<std::string> damaged{};  ///< newer ones that could not be used, and why
};

}  // namespace frugal
