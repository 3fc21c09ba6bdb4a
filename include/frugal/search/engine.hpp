// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/checkpoint/lock.hpp>
#include <frugal/search/journal.hpp>
#include <frugal/search/schedule/schedule.hpp>
#include <frugal/search/trials/finalists.hpp>
#include <frugal/search/trials/history.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <iostream>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

namespace frugal::detail {

/// A rung that this process is to train.
struct SearchTask {
  std::size_t trial = 0;
  std::size_t rung = 0;
  std::optional<std::uint64_t> until{};  ///< where the rung ends; nothing: the run's own end
  double seconds_before = 0;             ///< of this trial
  SearchTrial of{};
  std::shared_ptr<RunLock> claim{};  ///< held as long as it is trained
};

/// How a process has left a rung.
struct TaskOutcome {
  enum class Kind : unsigned char {
    result,     ///< the rung is ended
    failure,    ///< a result as well: out of memory, not a number
    error,      ///< it has thrown, and may be tried again
    preempted,  ///< the process is to end, or the budget is spent
  };
  Kind kind = Kind::result;
  RungResult result{};
  bool ended = false;                   ///< the run has ended by itself
  std::string text{};                   ///< of a failure or an error
  std::vector<std::string> warnings{};  ///< of the run
  double seconds = 0;                   ///< wall time
  bool by_ctrl_c = false;
  bool by_notice = false;  ///< preempted by another policy than SearchWatch, or by Settings::stop

  /// A failure or an error: the trial stays at its last rung, and its values are no numbers.
  void fail(Kind how, std::string why, SearchTask const& task, std::size_t objectives);

  /// Adds this attempt to the time of the trial, and to its cost unless CostMeter has measured that: at the price
  /// or, without one, at the rate of the trial's earlier rungs.
  void pay(SearchTask const& task, double attempt, std::optional<double> dollars_per_hour);
};

/// Waits for other workers, a little longer each time, and says once for which.
class Patience {
 public:
  explicit Patience(std::chrono::milliseconds until_said = std::chrono::minutes(1),
                    std::ostream& out = std::cerr)
      : until_said_(until_said), out_(&out) {}

  void wait(std::string const& for_what);

 private:
  std::chrono::milliseconds until_said_;
  std::ostream* out_;
  std::chrono::milliseconds pause_{20}, waited_{0};
  bool said_ = false;
};

/// The marks that a process has left in its run directory, which a kill does not take away.
struct RunTraces {
  double newest = 0;       ///< when a file of it was last written, in seconds since 1970; 0: never
  std::uint64_t step = 0;  ///< of the newest checkpoint
};

/// When a file was last written, in seconds since 1970 by the clock of its file system; 0 if it is not there. Workers on
/// several machines have one such clock, and each a clock of its own that may go wrong by minutes.
double written_at(std::filesystem::path const& file);

/// Files that other processes remove meanwhile are passed over; so are those of the lock `claim`, which whoever
/// looks holds.
RunTraces traces_in(std::filesystem::path const& folder);

/// Removes the checkpoints of a trial that is over and has no weights to keep: hundreds of them would fill the
/// disk.
void remove_checkpoints(std::filesystem::path const& folder);

/// The rules of the engine, next to the schedule.
struct EngineRules {
  std::uint64_t seed = 0;
  Finalists finalists{};
  std::optional<std::size_t> winner_by{};  ///< the objective that chooses finalists, of several
  std::optional<std::uint64_t>
      budget{};                     ///< in the unit of the rungs, without the finalists' repeats
  std::optional<double> seconds{};  ///< of all trials together
  std::optional<double> dollars{};  ///< likewise
  std::optional<double> dollars_per_hour{};  ///< of time that no CostMeter has billed
  std::optional<std::uint64_t> repeats{};    ///< of finalists, at most
  std::size_t most_failures = 3;             ///< errors after which a trial is left
  std::size_t most_kills =
      10;  ///< processes that end in a rung without a record and a new checkpoint, likewise
};

/// Decides what this process does next, by the journal alone: there is no coordinator, so that any process may
/// be killed at any time. A trial belongs to the process that holds the lock `claim` of its folder.
class SearchEngine {
 public:
  enum class Kind : unsigned char { task, wait, done, budget };
  using Suggest = std::function<Candidate(SearchHistory const& seen, std::size_t trial)>;

  SearchEngine(SearchJournal& journal, SearchSchedule const& schedule, Suggest suggest,
               EngineRules rules)
      : journal_(journal),
        schedule_(schedule),
        rungs_(schedule.rungs()),
        suggest_(std::move(suggest)),
        rules_(std::move(rules)) {}

  /// The folder of a trial.
  std::filesystem::path folder_of(std::size_t trial) const;

  /// Claims a rung to train, if `task` is what it returns.
  Kind next(SearchTask& task);

  /// Records how a task has ended, and gives up its claim.
  void record(SearchTask& task, TaskOutcome const& outcome);

  /// Whether the time or the money of all workers is spent, with that of the rungs that are being trained now.
  bool is_spent();
  /// The price per hour of a CostMeter, until it has billed a rung.
  void take_rate(double dollars_per_hour) { rate_ = dollars_per_hour / 3600; }
  /// Why open rungs are not this process's: the lock of one of them.
  std::string const& held_by() const { return held_by_; }

 private:
  std::vector<std::uint64_t> const& rungs_of(SearchTrial const& trial) const;
  /// A repeat trains in one piece.
  std::uint64_t budget_of(SearchTrial const& trial, std::size_t rung) const {
    return trial.repeats ? rungs_of(trial).back() : rungs_of(trial).at(rung);
  }
  bool is_last(SearchTrial const& trial, std::size_t rung) const {
    return trial.repeats || rung + 1 >= rungs_of(trial).size();
  }

  /// States that follow from results: also those whose line was lost with the process that wrote the result.
  bool settle(SearchJournal::Session& session) const;

  /// By the clock of the file system, as all times in the journal: the lock of this session has just been written.
  double now() const { return written_at(lock_of(journal_.path())); }
  /// With rungs that are being trained now.
  bool is_spent(SearchHistory const& history);
  /// Nothing if a live process has the trial.
  std::shared_ptr<RunLock> claim(std::size_t trial);
  /// Trials that live processes train: dead ones hold no lock.
  std::vector<std::size_t> held_claims(SearchHistory const& history);

  /// A rung that is open, and that no live process trains: one that has killed no process before others.
  bool claim_open(SearchHistory const& history, SearchTask& task);
  /// Whether the claimed rung is to be trained. The process that had it before may have been killed: its time
  /// is spent, and a trial that kills one process after the other is left.
  bool begin(SearchJournal::Session& session, SearchTask& task) const;

  void create(SearchJournal::Session& session, SearchDecision const& decision) const;

  static bool any_open(SearchHistory const& history);
  bool prune_rest(SearchJournal::Session& session) const;

  /// Of pruned trials, also of those whose process ended before it had removed them.
  Kind done(SearchHistory const& history) const;
  bool create_repeats(SearchJournal::Session& session) const;

  SearchJournal& journal_;
  SearchSchedule const& schedule_;
  std::vector<std::vector<std::uint64_t>> rungs_;
  Suggest suggest_;
  EngineRules rules_;
  std::optional<double> rate_;  ///< dollars a second
  std::string held_by_;
};

}  // namespace frugal::detail

#ifndef FRUGAL_COMPILED
#include <frugal/search/engine.ipp>
#endif
