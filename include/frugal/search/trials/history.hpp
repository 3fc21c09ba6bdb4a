// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/search/trials/candidate.hpp>
#include <frugal/search/trials/ranking.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace frugal {

/// A figure that a search minimises, or maximises.
struct SearchObjective {
  std::string name =
      "loss";  ///< a metric of the validation, "train_loss", "seconds", "dollars", "bytes", or one of SearchSettings::measures
  bool maximise = false;

  /// The value as a number that is better if it is smaller, and back.
  double to_minimise(double value) const { return maximise ? -value : value; }

  friend bool operator==(SearchObjective const&, SearchObjective const&) = default;
};

/// States of a trial, by Optuna's numbers.
enum class TrialState : unsigned char { running = 0, complete = 1, pruned = 2, failed = 3 };

/// The result of a trial at the end of a rung.
struct RungResult {
  /// Steps, samples and seconds of the trial up to here, those of earlier rungs included.
  std::uint64_t steps = 0;
  std::uint64_t samples = 0;
  double seconds = 0;               ///< wall time that was paid for, set-up and validation included
  std::optional<double> dollars{};  ///< likewise; nothing without a price
  /// One for each objective, all to be minimised (SearchObjective::to_minimise); NaN for a trial whose
  /// loss is not a number.
  ObjectiveValues values{};
};

/// One trial of a search. Its number is its place in the history.
struct SearchTrial {
  Candidate candidate{};
  std::size_t bracket = 0;
  std::uint64_t seed = 0;
  /// The number of the trial that this one repeats with another seed.
  std::optional<std::size_t> repeats{};
  std::size_t opened = 1;           ///< rungs that it may train up to
  std::vector<RungResult> rungs{};  ///< one for each rung that it has ended
  /// Its run has ended before its last rung, as EarlyStop does; it counts for later rungs as it is.
  bool ended = false;
  TrialState state = TrialState::running;
  std::vector<std::string> warnings{};  ///< of its run, each once
  std::string outcome{};  ///< why it failed: "out of memory", "the loss is not a number", an error
  std::size_t failures = 0;  ///< errors that it has thrown in its open rung
  /// Processes one after the other that have ended in its open rung without a record and a new checkpoint.
  std::size_t kills = 0;
  /// Wall time of preempted and failed attempts since the end of its newest rung.
  double spent_seconds = 0;
  /// When its open rung was last claimed, in seconds since 1970 by the clock of the file system; 0: it is not.
  double begun = 0;
  std::uint64_t begun_at = 0;  ///< step of the checkpoint that it had then

  /// Wall time of all its attempts that have ended.
  double seconds() const { return (rungs.empty() ? 0 : rungs.back().seconds) + spent_seconds; }
  bool is_over() const { return state != TrialState::running; }
  /// A rung is open and has no result.
  bool is_open() const { return !is_over() && rungs.size() < opened; }
  /// The newest values; infinite for a trial without any, or that failed.
  ObjectiveValues values(std::size_t objectives = 1) const;
};

/// The trials of a search so far.
struct SearchHistory {
  std::vector<SearchTrial> trials{};

  /// The first `count` trials.
  SearchHistory first(std::size_t count) const;
};

/// The price of a second that no CostMeter has billed: as given, or the mean of the billed ones. Nothing if
/// neither is known; then no cost is.
std::optional<double> dollars_per_second(SearchHistory const& of,
                                         std::optional<double> dollars_per_hour);

/// Cost of a trial up to the end of a rung: as it is recorded, or by its time.
std::optional<double> dollars_until(SearchTrial const& of, std::size_t rung,
                                    std::optional<double> per_second);

/// Cost of all its attempts that have ended; nothing without a price.
std::optional<double> dollars_of(SearchTrial const& of, std::optional<double> per_second);

/// Cost of all trials, repeats included.
std::optional<double> dollars_of(SearchHistory const& of, std::optional<double> per_second);

}  // namespace frugal

namespace frugal::detail {

/// The warnings of all trials, each text once, with the first of its trials and how many others have it. At most
/// `most` texts.
std::vector<std::string> trial_warnings(SearchHistory const& history, std::size_t most = 20);

}  // namespace frugal::detail

#ifndef FRUGAL_COMPILED
#include <frugal/search/trials/history.ipp>
#endif
