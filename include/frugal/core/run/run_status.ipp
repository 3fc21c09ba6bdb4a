// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/core/run/run_status.hpp>

#include <frugal/inline.hpp>

#include <utility>

namespace frugal {

FRUGAL_INLINE void UnfinishedValidation::add_to(std::vector<std::string>& names) const {
  if (!measured) return;
  names.emplace_back(mark);
  for (std::string const& name : completed_by) names.push_back(std::string(mark) + name);
}

FRUGAL_INLINE void UnfinishedValidation::take_from(std::vector<std::string>& names) {
  *this = {};
  std::vector<std::string> others;
  for (std::string& name : names) {
    if (!name.starts_with(mark)) {
      others.push_back(std::move(name));
      continue;
    }
    measured = true;
    if (name != mark) completed_by.push_back(name.substr(mark.size()));
  }
  names = std::move(others);
}

FRUGAL_INLINE void RunStatus::interrupted_by_user() {
  interrupted = true;
  preempted_by = "Ctrl-C";
}

FRUGAL_INLINE void RunStatus::saved(bool done) {
  if (done) {
    unsaved.clear();
  } else if (unsaved.empty()) {
    unsaved = "the policy that saves could not";
  }
}

FRUGAL_INLINE void RunStatus::clear_stop() {
  stopped = false;
  is_preempting = false;
  stopped_by.clear();
  stop_requested_by.clear();
  preempted_by.clear();
}

FRUGAL_INLINE void RunStatus::discard_event() {
  unfinished = {};
  validation = {};
  current_hook = {};
}

}  // namespace frugal
