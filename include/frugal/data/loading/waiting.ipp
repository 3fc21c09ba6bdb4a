// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/data/loading/waiting.hpp>

#include <frugal/inline.hpp>

namespace frugal {

FRUGAL_INLINE std::pair<std::string_view, double> StageSeconds::slowest() const {
  std::pair<std::string_view, double> most{"read", read};
  if (transform > most.second) most = {"transform", transform};
  if (collate > most.second) most = {"collate", collate};
  if (copy > most.second) most = {"copy", copy};
  if (total() > 0) most.second /= total();
  return most;
}

FRUGAL_INLINE std::string LoaderReport::warning() const {
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

FRUGAL_INLINE std::string LoaderReport::warning(std::string const& reason) const {
  if (steps < 10 || utilisation() >= 0.7) return {};
  return "training waits for data " + percent(waiting()) + " of the time: fix the data first; " +
         reason;
}

}  // namespace frugal

namespace frugal::detail {

FRUGAL_INLINE void WaitMeter::step(Time asked, Time given) {
  ++steps_;
  seconds_ += std::chrono::duration<double>(given - since_.value_or(asked)).count();
  waited_ += std::chrono::duration<double>(given - asked).count();
  since_ = given;
}

FRUGAL_INLINE void WaitMeter::fill(LoaderReport& report) const {
  report.steps = steps_;
  report.seconds = seconds_;
  report.waiting_seconds = waited_;
}

}  // namespace frugal::detail
