// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <frugal/core/run/counters.hpp>

namespace frugal {

/// Something that happened to the run itself, for its log: a resume, a preemption, a return to an
/// earlier state. Loss and metrics are no events: they have hooks.
struct Event {
  using Value = std::variant<std::uint64_t, double, std::string>;

  std::string name;                                     ///< "resume"
  std::vector<std::pair<std::string, Value>> fields{};  ///< in the order of writing
  Counters at{};                                        ///< when it happened; set by record()
  double seconds = 0;                                   ///< of training; likewise
};

/// The cost of a resume.
struct Resumed {
  std::string from;                    ///< the checkpoint's folder
  std::uint64_t step = 0;              ///< the checkpoint's optimizer steps
  std::uint64_t steps_repeated = 0;    ///< steps made after the checkpoint and lost, to within a
                                       ///< second
  double seconds_lost = 0;             ///< of training, spent on those steps
  std::vector<std::string> damaged{};  ///< newer checkpoints that could not be used, and why
  std::vector<std::string> changed{};  ///< how its recipe differs (ChangedRecipe::KeepWhatFits)
};

}  // namespace frugal
