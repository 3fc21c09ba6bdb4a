// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/search/engine.hpp>

#include <frugal/base/folder.hpp>
#include <frugal/checkpoint/checkpoint.hpp>
#include <frugal/checkpoint/lock.hpp>
#include <frugal/error.hpp>
#include <frugal/inline.hpp>
#include <frugal/search/trials/history.hpp>
#include <frugal/search/trials/ranking.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <system_error>
#include <thread>
#include <utility>

namespace frugal::detail {

FRUGAL_INLINE void TaskOutcome::fail(Kind how, std::string why, SearchTask const& task,
                                     std::size_t objectives) {
  kind = how;
  text = std::move(why);
  if (result.steps == 0 && !task.of.rungs.empty()) {
    result.steps = task.of.rungs.back().steps;
    result.samples = task.of.rungs.back().samples;
  }
  result.values.assign(objectives, std::numeric_limits<double>::quiet_NaN());
}

FRUGAL_INLINE void TaskOutcome::pay(SearchTask const& task, double attempt,
                                    std::optional<double> dollars_per_hour) {
  seconds = attempt;
  result.seconds = task.seconds_before + attempt;
  if (result.dollars) return;
  double const price = dollars_per_hour.value_or(0) / 3600;
  RungResult const before = task.of.rungs.empty() ? RungResult{} : task.of.rungs.back();
  if (before.dollars && before.seconds > 0) {
    double const rate = dollars_per_hour ? price : *before.dollars / before.seconds;
    result.dollars = *before.dollars + (result.seconds - before.seconds) * rate;
  } else if (dollars_per_hour) {
    result.dollars = result.seconds * price;
  }
}

FRUGAL_INLINE void Patience::wait(std::string const& for_what) {
  std::this_thread::sleep_for(pause_);
  waited_ += pause_;
  pause_ = std::min(pause_ * 2, std::chrono::milliseconds(1000));
  if (waited_ < until_said_ || std::exchange(said_, true)) return;
  *out_ << "frugal: the search waits for another worker. If that one is gone: " << for_what
        << std::endl;
}

FRUGAL_INLINE double written_at(std::filesystem::path const& file) {
  std::error_code gone;
  auto const time = std::filesystem::last_write_time(file, gone);
  if (gone) return 0;
  std::chrono::duration<double> const since =
      std::chrono::file_clock::to_sys(time).time_since_epoch();
  return since.count();
}

FRUGAL_INLINE RunTraces traces_in(std::filesystem::path const& folder) {
  namespace fs = std::filesystem;
  RunTraces found;
  std::error_code error;
  for (fs::recursive_directory_iterator each(folder, error), end; !error && each != end;
       each.increment(error)) {
    auto const name = each->path().filename().string();
    if (name == "claim" || name.starts_with("claim.")) continue;
    double const time = written_at(each->path());
    if (time == 0) continue;
    found.newest = std::max(found.newest, time);
    if (each->path().parent_path().filename() != "checkpoints") continue;
    found.step = std::max(found.step, step_of_name(name).value_or(0));
  }
  return found;
}

FRUGAL_INLINE void remove_checkpoints(std::filesystem::path const& folder) {
  std::error_code ignored;
  if (!std::filesystem::exists(folder / "checkpoints", ignored)) return;
  try {
    RunLock const claim(folder / "claim");
    std::filesystem::remove_all(folder / "checkpoints", ignored);
  } catch (StoreError const&) {  // another process has it, or the folder is not there
  }
}

FRUGAL_INLINE std::filesystem::path SearchEngine::folder_of(std::size_t trial) const {
  std::string name = std::to_string(trial);
  if (name.size() < 4) name.insert(0, 4 - name.size(), '0');
  return journal_.path().parent_path() / "trials" / name;
}

FRUGAL_INLINE SearchEngine::Kind SearchEngine::next(SearchTask& task) {
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

FRUGAL_INLINE void SearchEngine::record(SearchTask& task, TaskOutcome const& outcome) {
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

FRUGAL_INLINE bool SearchEngine::is_spent() {
  SearchJournal::Session const session(journal_);
  return is_spent(session.history());
}

FRUGAL_INLINE std::vector<std::uint64_t> const& SearchEngine::rungs_of(
    SearchTrial const& trial) const {
  if (trial.bracket < rungs_.size()) return rungs_[trial.bracket];
  throw FormatError(
      {.what = "a trial of the journal is in bracket " + std::to_string(trial.bracket),
       .where = journal_.path().string(),
       .why = "the schedule has " + std::to_string(rungs_.size()),
       .fix = "Restore the file from a copy, or search in another folder."});
}

FRUGAL_INLINE bool SearchEngine::settle(SearchJournal::Session& session) const {
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

FRUGAL_INLINE bool SearchEngine::is_spent(SearchHistory const& history) {
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

FRUGAL_INLINE std::shared_ptr<RunLock> SearchEngine::claim(std::size_t trial) {
  try {
    return std::make_shared<RunLock>(folder_of(trial) / "claim");
  } catch (LockError const& error) {
    held_by_ = error.what();
    return nullptr;
  }
}

FRUGAL_INLINE std::vector<std::size_t> SearchEngine::held_claims(SearchHistory const& history) {
  std::vector<std::size_t> held;
  for (std::size_t i = 0; i < history.trials.size(); ++i) {
    if (!history.trials[i].is_open() || history.trials[i].begun == 0) continue;
    if (!claim(i)) held.push_back(i);
  }
  return held;
}

FRUGAL_INLINE bool SearchEngine::claim_open(SearchHistory const& history, SearchTask& task) {
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

FRUGAL_INLINE bool SearchEngine::begin(SearchJournal::Session& session, SearchTask& task) const {
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

FRUGAL_INLINE void SearchEngine::create(SearchJournal::Session& session,
                                        SearchDecision const& decision) const {
  SearchHistory const& history = session.history();
  std::size_t const number = history.trials.size();
  auto candidate = schedule_.candidate(number);
  if (!candidate) candidate = suggest_(history.first(decision.visible), number);
  session.records().create(
      journal_.domain(),
      {.candidate = *std::move(candidate), .bracket = decision.bracket, .seed = rules_.seed});
}

FRUGAL_INLINE bool SearchEngine::any_open(SearchHistory const& history) {
  return std::ranges::any_of(history.trials, [](auto const& each) { return each.is_open(); });
}

FRUGAL_INLINE bool SearchEngine::prune_rest(SearchJournal::Session& session) const {
  for (std::size_t i = 0; i < session.history().trials.size(); ++i) {
    if (session.history().trials[i].is_over()) continue;
    session.records().outcome(i, "the budget is spent");
    session.records().state(i, TrialState::pruned, nullptr);
  }
  return session.commit();
}

FRUGAL_INLINE SearchEngine::Kind SearchEngine::done(SearchHistory const& history) const {
  for (std::size_t i = 0; i < history.trials.size(); ++i) {
    if (history.trials[i].state == TrialState::pruned) remove_checkpoints(folder_of(i));
  }
  return Kind::done;
}

FRUGAL_INLINE bool SearchEngine::create_repeats(SearchJournal::Session& session) const {
  std::uint64_t made = 0;
  for (SearchTrial const& each : session.history().trials) made += each.repeats ? 1U : 0U;
  for (SearchTrial const& each :
       missing_repeats(session.history(), rules_.finalists, rules_.seed, rules_.winner_by)) {
    if (rules_.repeats && ++made > *rules_.repeats) break;
    session.records().create(journal_.domain(), each);
  }
  return session.commit();
}

}  // namespace frugal::detail
