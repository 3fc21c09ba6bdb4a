// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/base/json.hpp>
#include <frugal/base/json_writer.hpp>
#include <frugal/error.hpp>
#include <frugal/search/trials/candidate.hpp>
#include <frugal/search/trials/history.hpp>

#include <cstddef>
#include <cstdint>
#include <ctime>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

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

namespace frugal {

namespace detail {

/// Names and texts that a journal must have in common with the search that continues it. Those of the job, which a
/// worker may have otherwise although it has the same settings, begin with job_prefix.
using SearchIdentity = std::vector<std::pair<std::string, std::string>>;

inline constexpr std::string_view job_prefix = "job: ";
/// What make() returns; a worker may be unable to make it, and checkpoints compare it by themselves.
inline constexpr std::string_view module_part = "the module";
/// Of a part of the job that cannot be compared.
inline constexpr std::string_view unknown_part = "?";

/// Applies the lines of a journal to a history, in their order. Lines of Optuna's tools that name neither a
/// trial nor a state, such as a dashboard's notes, are passed over.
class JournalReader {
 public:
  JournalReader(std::string file, SearchDomain const& domain,
                std::vector<SearchObjective> const& objectives, SearchIdentity const& identity)
      : file_(std::move(file)), domain_(domain), objectives_(objectives), identity_(identity) {}

  SearchHistory const& history() const { return history_; }
  /// Trial and rung of each result, in the order of the journal.
  std::vector<std::pair<std::size_t, std::size_t>> const& order() const { return order_; }
  /// Its first line creates a study.
  bool is_created() const { return created_; }
  /// The journal says which search it is of.
  bool is_identified() const { return identified_; }

  /// FormatError for a line that is no record; SettingsError for a journal of another search, StateError for one whose
  /// trials train another job.
  void apply(std::string_view line);

 private:
  [[noreturn]] void refuse(std::string const& why) const;
  Json const& member(Json const& of, char const* name) const;
  std::uint64_t number(Json const& of, char const* name) const;
  double real(Json const& of, char const* name) const;
  SearchTrial& trial_of(Json const& record);

  void create_study(Json const& record);
  void identify(Json const& record);
  void compare(std::string const& name, std::string const& there, std::string const& here) const;
  SettingsError another_search(std::string const& why) const;

  void create_trial(Json const& record);

  void attribute(Json const& record);
  void rung(SearchTrial& trial, Json const& each);
  void state(Json const& record);

  std::string file_;
  SearchDomain const& domain_;
  std::vector<SearchObjective> const& objectives_;
  SearchIdentity const& identity_;
  SearchHistory history_;
  std::vector<std::pair<std::size_t, std::size_t>> order_;
  std::size_t line_ = 0;
  bool created_ = false;
  bool identified_ = false;
};

}  // namespace detail
}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/search/journal_records.ipp>
#endif
