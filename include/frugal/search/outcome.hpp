// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <ostream>
#include <string>

#include <frugal/search/journal.hpp>
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
  void require_winner() const;
  /// SearchError if no trial has a result.
  void require_result() const;

  /// The table, then failed trials and dropped recipes, and why.
  void print(std::ostream& out) const { out << search_table(*this); }
  /// One HTML file with curves, settings and costs. StoreError if it cannot be written.
  void page(std::filesystem::path const& file) const;
  /// For main() to return: 75 if this process was preempted and must be started again, 130 after Ctrl-C, else 0.
  int exit_code() const { return by_ctrl_c ? 130 : interrupted ? 75 : 0; }

  friend std::ostream& operator<<(std::ostream& out, SearchOutcome const& outcome) {
    outcome.print(out);
    return out;
  }
};

}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/search/outcome.ipp>
#endif
