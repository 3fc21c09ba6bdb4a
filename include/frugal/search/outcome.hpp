// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <map>
#include <ostream>
#include <string>
#include <utility>

#include <frugal/base/whole_file.hpp>
#include <frugal/checkpoint/lock.hpp>
#include <frugal/error.hpp>
#include <frugal/inline.hpp>
#include <frugal/search/journal/journal.hpp>
#include <frugal/search/results/page.hpp>
#include <frugal/search/results/results.hpp>
#include <frugal/search/results/table.hpp>

namespace frugal {

/// The result of search().
struct [[nodiscard]] SearchOutcome : SearchResults {
  std::filesystem::path folder{};  ///< of the search
  std::filesystem::path
      weights{};           ///< folder of the winner's weights, as save_weights() writes them
  bool by_ctrl_c = false;  ///< the user pressed Ctrl-C; `interrupted` is set as well
  std::string code{};      ///< the winner's recipe and settings as C++ to paste

  /// The winner. SearchError if no trial has a result, or if several objectives have no rule for one.
  SearchTrial const& best() const {
    require_winner();
    return history.trials[*winner];
  }
  FRUGAL_INLINE void require_winner() const;
  /// SearchError if no trial has a result.
  FRUGAL_INLINE void require_result() const;

  /// The table, then failed trials and dropped recipes, and why.
  void print(std::ostream& out) const { out << search_table(*this); }
  /// One HTML file with curves, settings and costs. StoreError if it cannot be written.
  FRUGAL_INLINE void page(std::filesystem::path const& file) const {
    // Workers that end together write it together.
    RunLock const lock = detail::wait_for_lock(detail::lock_of(folder / "journal.log"));
    detail::write_whole_file(file, search_page(*this, "Search in " + folder.string(), code),
                             detail::Durable::no);
  }
  /// For main() to return: 75 if this process was preempted and must be started again, 130 after Ctrl-C, else 0.
  int exit_code() const { return by_ctrl_c ? 130 : interrupted ? 75 : 0; }

  friend std::ostream& operator<<(std::ostream& out, SearchOutcome const& outcome) {
    outcome.print(out);
    return out;
  }
};

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
