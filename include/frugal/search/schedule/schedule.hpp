// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <frugal/error.hpp>
#include <frugal/inline.hpp>
#include <frugal/search/schedule/rungs.hpp>
#include <frugal/search/trials/history.hpp>

namespace frugal {

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

[[noreturn]] FRUGAL_INLINE void refuse_schedule(std::string what, std::string why, std::string fix,
                                                char const* where) {
  throw SettingsError(
      {.what = std::move(what), .where = where, .why = std::move(why), .fix = std::move(fix)});
}

FRUGAL_INLINE void require_budget(SearchLimits const& limits, std::uint64_t least, RungUnit unit,
                                  char const* where) {
  if (!limits.budget || *limits.budget >= least) return;
  std::string const repeats = ", of which the finalists' repeats take ";
  refuse_schedule(
      "the budget is " + std::to_string(*limits.budget + limits.reserved) + " " + name_of(unit) +
          (limits.reserved == 0 ? "" : repeats + std::to_string(limits.reserved)),
      "the smallest search of this schedule takes " + std::to_string(least) + " " + name_of(unit),
      "Give a larger budget, or fewer or shorter rungs and fewer finalists.", where);
}
/// SettingsError for a sampler that draws in generations, with a schedule that has none.
FRUGAL_INLINE void require_no_generations(SearchLimits const& limits, char const* where) {
  if (limits.generation == 0) return;
  refuse_schedule("the sampler draws in generations of " + std::to_string(limits.generation),
                  "the trials of a generation are compared when all have trained alike, and "
                  "here most stop at a lower rung",
                  "Use RandomSearch with this sampler, or Tpe, SobolSampler or RandomSampler with "
                  "this schedule.",
                  where);
}
/// Neither trials, or rounds, nor a budget from which they follow.
[[noreturn]] FRUGAL_INLINE void refuse_unlimited(std::string const& schedule, char const* setting,
                                                 RungUnit unit) {
  bool const planned = is_deterministic(unit);
  refuse_schedule(
      "the search has neither " + std::string(setting) + " nor a budget in " + name_of(unit),
      "the number of " + std::string(setting) + " follows from one of them",
      "Set " + schedule + "::" + setting +
          (planned ? std::string(", or SearchBudget::") + name_of(unit) + "." : "."),
      schedule.c_str());
}
FRUGAL_INLINE void require_trials(std::uint64_t count, char const* where) {
  if (count != 0) return;
  refuse_schedule(std::string(where) + " is 0", "nothing would be trained", "Give 1 or more.",
                  where);
}
/// Where the first rung ends, at the earliest: as given, or three divisions by eta before the end.
FRUGAL_INLINE std::uint64_t first_rung(std::uint64_t least, std::uint64_t horizon,
                                       std::uint64_t eta) {
  return least != 0 ? least : std::max<std::uint64_t>(horizon / (eta * eta * eta), 1);
}

/// The trials of a schedule, which are all but repeats.
struct OwnTrials {
  std::size_t count = 0;
  bool open = false;  ///< a rung of one of them has no result yet

  FRUGAL_INLINE static OwnTrials of(SearchHistory const& history) {
    OwnTrials own;
    for (SearchTrial const& trial : history.trials) {
      if (trial.repeats) continue;
      ++own.count;
      own.open = own.open || trial.is_open();
    }
    return own;
  }
};

/// " at 3 9 27 steps"
FRUGAL_INLINE std::string budgets_text(std::vector<std::uint64_t> const& budgets, RungUnit unit) {
  std::string text = " at";
  for (std::uint64_t const each : budgets) text += " " + std::to_string(each);
  return text + " " + name_of(unit);
}

/// The result of a trial at a rung. One that has ended by itself counts at later rungs as it is; one that has
/// failed on the way is infinitely bad.
FRUGAL_INLINE ObjectiveValues values_at(SearchTrial const& trial, std::size_t rung,
                                        std::size_t objectives) {
  if (trial.rungs.size() > rung) return trial.rungs[rung].values;
  if (trial.state == TrialState::failed || trial.rungs.empty()) {
    return ObjectiveValues(objectives, std::numeric_limits<double>::infinity());
  }
  return trial.rungs.back().values;
}
/// Whether a trial has come to the end of a rung, or will never come there.
FRUGAL_INLINE bool has_ended_rung(SearchTrial const& trial, std::size_t rung) {
  return trial.is_over() || trial.rungs.size() > rung;
}

/// Whether a budget in the unit of the rungs pays for what a decision opens, with all that is open already.
FRUGAL_INLINE bool pays_for(std::optional<std::uint64_t> budget,
                            std::vector<std::vector<std::uint64_t>> const& rungs,
                            SearchHistory const& history, SearchDecision const& decision) {
  if (!budget) return true;
  std::uint64_t all = 0;
  for (SearchTrial const& each : history.trials) {
    if (!each.repeats) all += rungs.at(each.bracket).at(each.opened - 1);
  }
  if (decision.kind == SearchDecision::Kind::create) {
    return all + rungs.at(decision.bracket).front() <= *budget;
  }
  SearchTrial const& trial = history.trials[decision.trial];
  std::vector<std::uint64_t> const& own = rungs.at(trial.bracket);
  return all + own.at(trial.opened) - own.at(trial.opened - 1) <= *budget;
}

}  // namespace detail
}  // namespace frugal
