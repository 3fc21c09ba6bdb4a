// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/search/outcome.hpp>

#include <frugal/base/file.hpp>
#include <frugal/checkpoint/lock.hpp>
#include <frugal/error.hpp>
#include <frugal/inline.hpp>

#include <map>
#include <utility>

namespace frugal {

FRUGAL_INLINE void SearchOutcome::page(std::filesystem::path const& file) const {
  // Workers that end together write it together.
  RunLock const lock = detail::wait_for_lock(detail::lock_of(folder / "journal.log"));
  detail::write_whole_file(file, search_page(*this, "Search in " + folder.string(), code),
                           detail::Durable::no);
}

FRUGAL_INLINE void SearchOutcome::require_winner() const {
  if (winner) return;
  require_result();
  throw SearchError({.what = "the search has " + std::to_string(objectives.size()) +
                             " objectives, and no rule that names a winner",
                     .where = folder.string(),
                     .why = "each of the " + std::to_string(front.size()) +
                            " trials on the Pareto front is better than the others in one of them",
                     .fix = "Choose one of SearchOutcome::front, or set "
                            "SearchSettings::winner_by to the name of an objective."});
}

FRUGAL_INLINE void SearchOutcome::require_result() const {
  if (winner || !front.empty()) return;
  std::map<std::string, std::size_t> reasons;
  for (SearchTrial const& each : history.trials) {
    if (each.state == TrialState::failed) ++reasons[each.outcome];
    if (each.state == TrialState::pruned) ++reasons["a rung before the last one"];
  }
  std::string why;
  for (auto const& [reason, count] : reasons) {
    why += (why.empty() ? "" : "; ") + std::to_string(count) + " ended with: " + reason;
  }
  throw SearchError({.what = "none of the " + std::to_string(history.trials.size()) +
                             " trials of the search has a result",
                     .where = folder.string(),
                     .why = why.empty() ? "no trial has trained to its end" : why,
                     .fix =
                         "Search smaller learning rates and models, or give a larger budget. The "
                         "trials' folders have their logs and checkpoints."});
}

}  // namespace frugal
