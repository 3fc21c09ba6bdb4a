// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <frugal/checkpoint/lock.hpp>
#include <frugal/error.hpp>
#include <frugal/inline.hpp>
#include <frugal/search/journal/journal.hpp>
#include <frugal/search/run_traces.hpp>
#include <frugal/search/schedule/schedule.hpp>
#include <frugal/search/task.hpp>
#include <frugal/search/trials/cost.hpp>
#include <frugal/search/trials/finalists.hpp>
#include <frugal/search/trials/history.hpp>
#include <frugal/search/trials/ranking.hpp>

namespace frugal::detail {

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
  FRUGAL_INLINE std::filesystem::path folder_of(std::size_t trial) const {
    std::string name = std::to_string(trial);
    if (name.size() < 4) name.insert(0, 4 - name.size(), '0');
    return journal_.path().parent_path() / "trials" / name;
  }

  /// Claims a rung to train, if `task` is what it returns.
  FRUGAL_INLINE Kind next(SearchTask& task) {
    using What = SearchDecision::Kind;
    SearchJournal::Session session(journal_);
    SearchHistory const& history = session.history();
    while (true) {
      if (settle(session)) continue;
      if (is_spent(history)) return Kind::budget;
      if (claim_open(history, task)) {
        if (begin(session, task)) return Kind::task;
        continue;
      }
      SearchDecision const decision = schedule_.next(history);
      bool const opens = decision.kind == What::create || decision.kind == What::promote;
      if (opens && !pays_for(rules_.budget, rungs_, history, decision)) {
        if (any_open(history)) return Kind::wait;
        if (prune_rest(session)) continue;
        if (create_repeats(session)) continue;
        return done(history);
      }
      switch (decision.kind) {
        case What::create:
          create(session, decision);
          break;
        case What::promote:
          session.records().open(decision.trial, history.trials[decision.trial].opened + 1);
          break;
        case What::prune:
          session.records().state(decision.trial, TrialState::pruned, nullptr);
          session.commit();
          remove_checkpoints(folder_of(decision.trial));
          break;
        case What::wait:
          return Kind::wait;
        case What::done:
          if (create_repeats(session)) continue;
          return any_open(history) ? Kind::wait : done(history);
      }
      session.commit();
    }
  }

  /// Records how a task has ended, and gives up its claim.
  FRUGAL_INLINE void record(SearchTask& task, TaskOutcome const& outcome) {
    using What = TaskOutcome::Kind;
    {
      SearchJournal::Session session(journal_);
      SearchTrial const& trial = session.history().trials.at(task.trial);
      JournalRecords& records = session.records();
      // On file systems that lose locks another process may have had the trial as well.
      bool const is_ours = !trial.is_over() && trial.rungs.size() == task.rung;
      if (is_ours && (outcome.kind == What::result || outcome.kind == What::failure)) {
        if (outcome.kind == What::failure) records.outcome(task.trial, outcome.text);
        records.rung(task.trial, task.rung, budget_of(trial, task.rung), outcome.result,
                     outcome.ended || outcome.kind == What::failure, outcome.warnings);
        if (outcome.kind == What::failure) {
          records.state(task.trial, TrialState::failed, nullptr);
        }
      } else if (is_ours && outcome.kind == What::error) {
        records.failure(task.trial, trial.failures + 1, outcome.text, outcome.seconds);
      } else if (is_ours) {
        records.spent(task.trial, outcome.seconds);
      }
      session.commit();
      while (settle(session)) {
      }
    }
    task.claim.reset();
  }

  /// Whether the time or the money of all workers is spent, with that of the rungs that are being trained now.
  FRUGAL_INLINE bool is_spent() {
    SearchJournal::Session const session(journal_);
    return is_spent(session.history());
  }
  /// The price per hour of a CostMeter, until it has billed a rung.
  void take_rate(double dollars_per_hour) { rate_ = dollars_per_hour / 3600; }
  /// Why open rungs are not this process's: the lock of one of them.
  std::string const& held_by() const { return held_by_; }

 private:
  FRUGAL_INLINE std::vector<std::uint64_t> const& rungs_of(SearchTrial const& trial) const {
    if (trial.bracket < rungs_.size()) return rungs_[trial.bracket];
    throw FormatError(
        {.what = "a trial of the journal is in bracket " + std::to_string(trial.bracket),
         .where = journal_.path().string(),
         .why = "the schedule has " + std::to_string(rungs_.size()),
         .fix = "Restore the file from a copy, or search in another folder."});
  }
  /// A repeat trains in one piece.
  std::uint64_t budget_of(SearchTrial const& trial, std::size_t rung) const {
    return trial.repeats ? rungs_of(trial).back() : rungs_of(trial).at(rung);
  }
  bool is_last(SearchTrial const& trial, std::size_t rung) const {
    return trial.repeats || rung + 1 >= rungs_of(trial).size();
  }

  /// States that follow from results: also those whose line was lost with the process that wrote the result.
  FRUGAL_INLINE bool settle(SearchJournal::Session& session) const {
    SearchHistory const& history = session.history();
    for (std::size_t i = 0; i < history.trials.size(); ++i) {
      SearchTrial const& trial = history.trials[i];
      if (trial.is_over()) continue;
      if (trial.failures >= rules_.most_failures) {
        session.records().state(i, TrialState::failed, nullptr);
      } else if (!trial.rungs.empty() && !is_finite(trial.rungs.back().values)) {
        if (trial.outcome.empty()) session.records().outcome(i, "a value is not a number");
        session.records().state(i, TrialState::failed, nullptr);
      } else if (!trial.rungs.empty() && (trial.ended || is_last(trial, trial.rungs.size() - 1))) {
        session.records().state(i, TrialState::complete, &trial.rungs.back().values);
      }
    }
    return session.commit();
  }

  /// By the clock of the file system, as all times in the journal: the lock of this session has just been written.
  double now() const { return written_at(lock_of(journal_.path())); }
  /// With rungs that are being trained now.
  FRUGAL_INLINE bool is_spent(SearchHistory const& history) {
    if (!rules_.seconds && !rules_.dollars) return false;
    double seconds = 0;
    for (std::size_t const i : held_claims(history)) {
      seconds += std::max(now() - history.trials[i].begun, 0.0);
    }
    auto price = dollars_per_second(history, rules_.dollars_per_hour);
    if (!price) price = rate_;
    if (rules_.dollars && price) {
      if (*dollars_of(history, price) + seconds * *price >= *rules_.dollars) return true;
    }
    for (SearchTrial const& each : history.trials) seconds += each.seconds();
    return rules_.seconds && seconds >= *rules_.seconds;
  }
  /// Nothing if a live process has the trial.
  FRUGAL_INLINE std::shared_ptr<RunLock> claim(std::size_t trial) {
    try {
      return std::make_shared<RunLock>(folder_of(trial) / "claim");
    } catch (LockError const& error) {
      held_by_ = error.what();
      return nullptr;
    }
  }
  /// Trials that live processes train: dead ones hold no lock.
  FRUGAL_INLINE std::vector<std::size_t> held_claims(SearchHistory const& history) {
    std::vector<std::size_t> held;
    for (std::size_t i = 0; i < history.trials.size(); ++i) {
      if (!history.trials[i].is_open() || history.trials[i].begun == 0) continue;
      if (!claim(i)) held.push_back(i);
    }
    return held;
  }

  /// A rung that is open, and that no live process trains: one that has killed no process before others.
  FRUGAL_INLINE bool claim_open(SearchHistory const& history, SearchTask& task) {
    std::vector<std::pair<std::size_t, std::size_t>> open;
    for (std::size_t i = 0; i < history.trials.size(); ++i) {
      if (history.trials[i].is_open()) open.emplace_back(history.trials[i].kills, i);
    }
    std::ranges::sort(open);
    for (auto const& [kills, i] : open) {
      SearchTrial const& trial = history.trials[i];
      create_folders(folder_of(i));
      task.claim = claim(i);
      if (!task.claim) continue;
      task.trial = i;
      task.rung = trial.rungs.size();
      task.until.reset();
      if (!is_last(trial, task.rung)) task.until = budget_of(trial, task.rung);
      return true;
    }
    return false;
  }
  /// Whether the claimed rung is to be trained. The process that had it before may have been killed: its time
  /// is spent, and a trial that kills one process after the other is left.
  FRUGAL_INLINE bool begin(SearchJournal::Session& session, SearchTask& task) const {
    SearchTrial const& trial = session.history().trials[task.trial];
    RunTraces const traces = traces_in(folder_of(task.trial));
    if (trial.begun != 0) {
      double const seconds =
          std::clamp(traces.newest - trial.begun, 0.0, std::max(now() - trial.begun, 0.0));
      session.records().killed(task.trial, seconds, traces.step);
      session.commit();
      if (trial.kills >= rules_.most_kills) {
        session.records().outcome(task.trial, "its process ended " + std::to_string(trial.kills) +
                                                  " times without a result and a new checkpoint: "
                                                  "look for a lack of host memory, or a crash");
        session.records().state(task.trial, TrialState::failed, nullptr);
        session.commit();
        task.claim.reset();
        return false;
      }
    }
    session.records().begun(task.trial, written_at(folder_of(task.trial) / "claim"), traces.step);
    session.commit();
    task.of = session.history().trials[task.trial];
    task.seconds_before = task.of.seconds();
    return true;
  }

  FRUGAL_INLINE void create(SearchJournal::Session& session, SearchDecision const& decision) const {
    SearchHistory const& history = session.history();
    std::size_t const number = history.trials.size();
    auto candidate = schedule_.candidate(number);
    if (!candidate) candidate = suggest_(history.first(decision.visible), number);
    session.records().create(
        journal_.domain(),
        {.candidate = *std::move(candidate), .bracket = decision.bracket, .seed = rules_.seed});
  }

  FRUGAL_INLINE static bool any_open(SearchHistory const& history) {
    return std::ranges::any_of(history.trials, [](auto const& each) { return each.is_open(); });
  }
  FRUGAL_INLINE bool prune_rest(SearchJournal::Session& session) const {
    for (std::size_t i = 0; i < session.history().trials.size(); ++i) {
      if (session.history().trials[i].is_over()) continue;
      session.records().outcome(i, "the budget is spent");
      session.records().state(i, TrialState::pruned, nullptr);
    }
    return session.commit();
  }

  /// Of pruned trials, also of those whose process ended before it had removed them.
  FRUGAL_INLINE Kind done(SearchHistory const& history) const {
    for (std::size_t i = 0; i < history.trials.size(); ++i) {
      if (history.trials[i].state == TrialState::pruned) remove_checkpoints(folder_of(i));
    }
    return Kind::done;
  }
  FRUGAL_INLINE bool create_repeats(SearchJournal::Session& session) const {
    std::uint64_t made = 0;
    for (SearchTrial const& each : session.history().trials) made += each.repeats ? 1U : 0U;
    for (SearchTrial const& each :
         missing_repeats(session.history(), rules_.finalists, rules_.seed, rules_.winner_by)) {
      if (rules_.repeats && ++made > *rules_.repeats) break;
      session.records().create(journal_.domain(), each);
    }
    return session.commit();
  }

  SearchJournal& journal_;
  SearchSchedule const& schedule_;
  std::vector<std::vector<std::uint64_t>> rungs_;
  Suggest suggest_;
  EngineRules rules_;
  std::optional<double> rate_;  ///< dollars a second
  std::string held_by_;
};

}  // namespace frugal::detail
