// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/core/run/control.hpp>

#include <frugal/inline.hpp>

#include <algorithm>
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

FRUGAL_INLINE void Control::ask(End how, std::string_view who) {
  switch (how) {
    case End::none:
      break;
    case End::stop:
      if (stopped_by_.empty()) stopped_by_ = who;
      if (stop_requested_by_.empty()) stop_requested_by_ = who;
      break;
    case End::preempt:
      if (preempted_by_.empty()) preempted_by_ = who;
      break;
    case End::interrupt:
      by_user_ = true;
      preempted_by_ = who;
      if (end_ == End::preempt) end_ = End::interrupt;
      break;
  }
}

FRUGAL_INLINE void Control::close(End how) {
  if (how == End::preempt && by_user_) how = End::interrupt;
  end_ = std::max(end_, how);
}

FRUGAL_INLINE void Control::reopen() {
  end_ = End::none;
  is_preempting_ = false;
  stopped_by_.clear();
  stop_requested_by_.clear();
  preempted_by_.clear();
}

FRUGAL_INLINE void Control::saved(bool done) {
  if (done) {
    unsaved_.clear();
  } else if (unsaved_.empty()) {
    unsaved_ = "the policy that saves could not";
  }
}

FRUGAL_INLINE void Control::discard_event() {
  unfinished_ = {};
  validation_ = {};
  current_hook_ = {};
}

}  // namespace frugal
