// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include <frugal/search/schedule/schedule.hpp>
#include <frugal/search/trials/history.hpp>

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
