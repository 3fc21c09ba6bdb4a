// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <ctime>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <frugal/base/json_writer.hpp>
#include <frugal/search/trials/candidate.hpp>
#include <frugal/search/trials/distribution.hpp>
#include <frugal/search/trials/history.hpp>

// The lines of a search's journal: operations of Optuna's JournalStorage, one JSON object a line. What Optuna
// has no place for is in user attributes, whose names begin with "frugal".
namespace frugal::detail {

/// Of the lines in attributes that begin with "frugal". 2: the header has the identity of the job, and a rung its
/// warnings.
inline constexpr std::uint64_t journal_format = 2;

/// Optuna's numbers of operations.
enum class JournalOperation : std::uint64_t {
  create_study = 0,
  study_attribute = 2,
  create_trial = 4,
  state = 6,
  intermediate_value = 7,
  trial_attribute = 8,
};

/// Now, in UTC, as Optuna writes it.
std::string journal_time();

/// Writes the lines of one process.
class JournalRecords {
 public:
  JournalRecords(std::string worker, std::vector<SearchObjective> objectives)
      : worker_(std::move(worker)), objectives_(std::move(objectives)) {}

  void create_study(std::string_view name);

  /// Names and texts that a search must have in common with the journal that it continues.
  void identify(std::vector<std::pair<std::string, std::string>> const& identity);
  /// The names of the objectives, for Optuna's plots.
  void name_objectives();

  void create(SearchDomain const& domain, SearchTrial const& trial);

  /// `at`: the budget of the rung.
  void rung(std::size_t trial, std::size_t rung, std::uint64_t at, RungResult const& result,
            bool ended, std::vector<std::string> const& warnings = {});
  void open(std::size_t trial, std::size_t opened);
  /// A process begins to train the open rung of a trial, at this time in seconds since 1970, from the checkpoint
  /// of this step.
  void begun(std::size_t trial, double time, std::uint64_t checkpoint);
  /// The process that had begun is gone, and has written nothing about it. It has left this checkpoint.
  void killed(std::size_t trial, double seconds, std::uint64_t checkpoint);
  /// Seconds that a preempted worker has spent on a rung without ending it.
  void spent(std::size_t trial, double seconds);
  void failure(std::size_t trial, std::size_t count, std::string_view text, double seconds);
  /// Why a trial fails: before its state, and before a result that is not a number.
  void outcome(std::size_t trial, std::string_view text);
  /// `values`: of a complete trial.
  void state(std::size_t trial, TrialState state, ObjectiveValues const* values);

  /// The lines since the last call.
  std::string take() { return std::exchange(lines_, {}); }

 private:
  template <class Visit>
  static void each_parameter(SearchDomain const& domain, Candidate const& candidate,
                             Visit&& visit) {
    visit(SearchDomain::recipe_parameter, Distribution(domain.recipe_choice()),
          static_cast<double>(candidate.recipe));
    for (std::size_t i = 0; i < domain.settings.size(); ++i) {
      if (!candidate.values[i]) continue;
      visit(domain.settings[i].name, domain.settings[i].values, *candidate.values[i]);
    }
  }
  JsonWriter begin(JournalOperation operation) const;
  JsonWriter begin_attribute(std::size_t trial, std::string const& name) const;
  void end(JsonWriter line) { lines_ += line.str("\n"); }

  std::string worker_;
  std::vector<SearchObjective> objectives_;
  std::string lines_;
};

}  // namespace frugal::detail

#ifndef FRUGAL_COMPILED
#include <frugal/search/journal/records.ipp>
#endif
