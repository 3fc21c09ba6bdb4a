// SPDX-License-Identifier: Apache-2.0
// R: the most that a trial trains, r: the least, both in steps or samples; eta: one trial in eta goes on.
#pragma once

#include <frugal/search/trials/history.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace frugal {

/// Trials that train up to the same point before they are compared.
struct Rung {
  std::uint64_t trials = 0;
  std::uint64_t budget = 0;  ///< steps or samples of each trial, counted from its begin

  friend bool operator==(Rung const&, Rung const&) = default;
};

/// The rungs of one successive halving, the lowest first.
struct Bracket {
  std::vector<Rung> rungs{};

  /// Steps or samples of all trials, if each goes on from where it was: nothing is trained twice.
  std::uint64_t cost() const {
    std::uint64_t all = 0, before = 0;
    for (Rung const& each : rungs) {
      all += each.trials * (each.budget - before);
      before = each.budget;
    }
    return all;
  }
};

namespace detail {

void require_rungs(std::uint64_t least, std::uint64_t most, std::uint64_t eta, char const* where);

}  // namespace detail

/// Successive halving: `trials` train up to the least budget, the best 1/eta of them up to eta times that, and
/// so on, until one is left or the next rung would be beyond the most. The last rung is at the most.
///
/// Source  Jamieson and Talwalkar, "Non-stochastic best arm identification and hyperparameter optimization"
///         (2016); the rungs are those of Li et al., "A system for massively parallel hyperparameter tuning"
///         (2020), section 2, counted back from the most: R, R / eta, R / eta^2, and so on.
Bracket successive_halving(std::uint64_t trials, std::uint64_t least, std::uint64_t most,
                           std::uint64_t eta);

/// The brackets of Hyperband: successive halving with many trials that begin with the least budget, then with
/// fewer that begin with more, up to some that all train the most. It spends about as much on each, and does
/// not rely on what short runs say of long ones.
///
/// Source  Li et al., "Hyperband: a novel bandit-based approach to hyperparameter optimization" (JMLR 2018),
///         algorithm 1.
std::vector<Bracket> hyperband(std::uint64_t least, std::uint64_t most, std::uint64_t eta);

/// The unit of rungs.
enum class RungUnit : unsigned char {
  steps,    ///< optimizer steps: the same decisions on every machine
  samples,  ///< training samples: likewise
  seconds,  ///< of training: decisions depend on the machine's speed
  cents,    ///< likewise, in hundredths of a dollar; needs a price
};

/// The unit in texts: "steps".
inline char const* name_of(RungUnit unit) {
  char const* const names[] = {"steps", "samples", "seconds", "cents"};
  return names[static_cast<unsigned>(unit)];
}
/// Whether decisions with rungs in this unit are the same on every machine.
inline bool is_deterministic(RungUnit unit) {
  return unit == RungUnit::steps || unit == RungUnit::samples;
}

/// The next step of a search.
struct SearchDecision {
  enum class Kind : unsigned char {
    create,   ///< a new trial, in `bracket`; the sampler may look at the first `visible` trials
    promote,  ///< opens the next rung of `trial`
    prune,    ///< ends `trial`
    wait,     ///< for results of open rungs
    done,     ///< nothing is left to decide, and no rung is open
  };
  Kind kind = Kind::wait;
  std::size_t trial = 0;
  std::size_t bracket = 0;
  std::size_t visible = 0;

  friend bool operator==(SearchDecision const&, SearchDecision const&) = default;
};

/// The limits that a schedule is planned for.
struct SearchLimits {
  std::uint64_t horizon = 1;              ///< of a whole run, in the unit of the rungs
  std::optional<std::uint64_t> budget{};  ///< of all trials, in that unit; nothing: no limit
  std::uint64_t reserved = 0;             ///< for the finalists' repeats, next to that budget
  std::size_t objectives = 1;
  bool learns = false;         ///< the sampler looks at results
  std::size_t generation = 0;  ///< trials that the sampler draws without looking; 0: any number
  SearchDomain const* domain = nullptr;
};

/// Decides from a history which trials begin, go on and end. A pure function of the history, so that any
/// process decides alike, and a replay of the journal, too. Repeats of finalists are none of its trials.
class SearchSchedule {
 public:
  SearchSchedule() = default;
  SearchSchedule(SearchSchedule const&) = delete;
  SearchSchedule& operator=(SearchSchedule const&) = delete;
  virtual ~SearchSchedule() = default;

  /// The budgets of rungs, ascending, for each bracket; the last is the horizon.
  virtual std::vector<std::vector<std::uint64_t>> rungs() const = 0;
  virtual SearchDecision next(SearchHistory const& history) const = 0;
  /// The candidate of a trial, if the schedule and not the sampler chooses it.
  virtual std::optional<Candidate> candidate(std::size_t /*trial*/) const { return std::nullopt; }
  /// Whether the decisions are the same for any number of workers.
  virtual bool is_deterministic() const { return true; }
  /// The same in every run of the same search: what the journal compares.
  virtual std::string text() const = 0;
};

/// A schedule as search() takes it: an aggregate that is bound to a run's horizon and budget.
template <class T>
concept SearchScheduler = requires(T const& scheduler, SearchLimits const& limits) {
  { scheduler.bind(limits) } -> std::same_as<std::unique_ptr<SearchSchedule const>>;
  { scheduler.unit } -> std::convertible_to<RungUnit>;
};

/// One trial in N goes on to the next rung.
template <unsigned N>
struct Eta {
  static_assert(N >= 2,
                "frugal: Eta<N> lets one trial in N go on to the next rung. Write 2 or more; 3 and "
                "4 are usual.");
  static constexpr unsigned value = N;
};

namespace detail {

[[noreturn]] void refuse_schedule(std::string what, std::string why, std::string fix,
                                  char const* where);

void require_budget(SearchLimits const& limits, std::uint64_t least, RungUnit unit,
                    char const* where);
/// SettingsError for a sampler that draws in generations, with a schedule that has none.
void require_no_generations(SearchLimits const& limits, char const* where);
/// Neither trials, or rounds, nor a budget from which they follow.
[[noreturn]] void refuse_unlimited(std::string const& schedule, char const* setting, RungUnit unit);
void require_trials(std::uint64_t count, char const* where);
void require_eta(std::uint64_t eta);
/// Where the first rung ends, at the earliest: as given, or three divisions by eta before the end.
std::uint64_t first_rung(std::uint64_t least, std::uint64_t horizon, std::uint64_t eta);

/// The trials of a schedule, which are all but repeats.
struct OwnTrials {
  std::size_t count = 0;
  bool open = false;  ///< a rung of one of them has no result yet

  static OwnTrials of(SearchHistory const& history);
};

/// " at 3 9 27 steps"
std::string budgets_text(std::vector<std::uint64_t> const& budgets, RungUnit unit);

/// The result of a trial at a rung. One that has ended by itself counts at later rungs as it is; one that has
/// failed on the way is infinitely bad.
ObjectiveValues values_at(SearchTrial const& trial, std::size_t rung, std::size_t objectives);
/// Whether a trial has come to the end of a rung, or will never come there.
bool has_ended_rung(SearchTrial const& trial, std::size_t rung);

/// Whether a budget in the unit of the rungs pays for what a decision opens, with all that is open already.
bool pays_for(std::optional<std::uint64_t> budget,
              std::vector<std::vector<std::uint64_t>> const& rungs, SearchHistory const& history,
              SearchDecision const& decision);

}  // namespace detail
}  // namespace frugal

namespace frugal::detail {

/// Follows a schedule to its end, as one worker that trains each rung when it opens.
///
/// pays(decision)  false: the schedule ends before this trial or promotion
/// train(number)   ends the open rung of the trial: adds its result and, if it is over, its state
template <class Pays, class Train>
void play_schedule(SearchSchedule const& schedule, SearchHistory& history, Pays&& pays,
                   Train&& train) {
  using Kind = SearchDecision::Kind;
  while (true) {
    SearchDecision const decision = schedule.next(history);
    switch (decision.kind) {
      case Kind::create:
        if (!pays(decision)) return;
        history.trials.push_back({.bracket = decision.bracket});
        train(history.trials.size() - 1);
        break;
      case Kind::promote:
        if (!pays(decision)) return;
        ++history.trials.at(decision.trial).opened;
        train(decision.trial);
        break;
      case Kind::prune:
        history.trials.at(decision.trial).state = TrialState::pruned;
        break;
      case Kind::wait:
      case Kind::done:
        return;
    }
  }
}

}  // namespace frugal::detail

#ifndef FRUGAL_COMPILED
#include <frugal/search/schedule/schedule.ipp>
#endif
