// SPDX-License-Identifier: Apache-2.0
// Successive halving, as it runs and as it is replayed on curves of trials that have all trained in full.
#pragma once

#include <frugal/frugal.hpp>
#include <frugal/search.hpp>

#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "search_jobs.hpp"

namespace frugal_bench {

using nlohmann::json;

struct Options {
  std::string way, job = "images", method = "halving", folder, data, text;
  std::uint64_t steps = 270, trials = 64, resamples = 20, of = 64, seed = 1, rounds = 5,
                budget = 40;
  int milliseconds = 20;
};

inline fr::SearchSettings settings_of(Options const& options) {
  fr::SearchSettings settings{
      .settings = {.run_dir = options.folder, .steps = options.steps, .seed = options.seed}};
  settings.finalists.count = 0;
  return settings;
}

/// Three rungs: with 64 trials seven come to the end.
inline fr::SuccessiveHalving<fr::Eta<3>> halving_of(Options const& options) {
  return {.trials = options.trials, .least = options.steps / 9};
}

inline std::uint64_t samples_of(fr::SearchHistory const& history) {
  std::uint64_t all = 0;
  for (fr::SearchTrial const& each : history.trials) {
    if (!each.rungs.empty()) all += each.rungs.back().samples;
  }
  return all;
}

inline json values_of(fr::SearchHistory const& history) {
  json all = json::array();
  for (fr::SearchTrial const& trial : history.trials) {
    json& own = all.emplace_back(json::array());
    for (fr::RungResult const& rung : trial.rungs) own.push_back(rung.values.front());
  }
  return all;
}

/// Decides as a search would with these trials, whose results are known: `at[k]` is the place in a curve of rung k.
inline fr::SearchHistory replay(fr::SearchSchedule const& schedule, fr::SearchHistory const& curves,
                                std::vector<std::size_t> const& members,
                                std::vector<std::size_t> const& at) {
  fr::SearchHistory history;
  auto const train = [&](std::size_t number) {
    fr::SearchTrial& trial = history.trials[number];
    fr::SearchTrial const& known = curves.trials[members[number]];
    std::size_t const place = std::min(at[trial.rungs.size()], known.rungs.size() - 1);
    trial.rungs.push_back(known.rungs[place]);
    // Complete, or failed.
    if (place + 1 == known.rungs.size()) trial.state = known.state;
  };
  auto const pays = [](fr::SearchDecision const&) { return true; };
  fr::detail::play_schedule(schedule, history, pays, train);
  return history;
}

inline json compared(fr::SearchHistory const& replayed, fr::SearchHistory const& curves,
                     std::vector<std::size_t> const& members) {
  std::size_t const winner = fr::winner_of(replayed).value();
  double const best = replayed.trials[winner].values().front();
  std::uint64_t in_full = 0;
  std::size_t rank = 1;
  for (std::size_t const member : members) {
    in_full += curves.trials[member].rungs.back().samples;
    if (curves.trials[member].values().front() < best) ++rank;
  }
  return {{"samples", samples_of(replayed)},
          {"in_full", in_full},
          {"rank", rank},
          {"winner", members[winner]},
          {"loss", best}};
}

/// Trains all trials in full, then replays successive halving of some of them.
template <class Space, class Job>
json curves(Options const& options, Space const& space, Job const& job) {
  fr::SearchOutcome const found =
      fr::search(space, job, settings_of(options),
                 EveryRung{.trials = options.trials, .least = options.steps / 9});
  Options fewer = options;
  fewer.trials = options.of;
  auto const schedule = halving_of(fewer).bind({.horizon = options.steps});
  // With a few trials the last one goes to the end at once.
  std::vector<std::uint64_t> const fewer_rungs = schedule->rungs().front();
  std::vector<std::size_t> at;
  for (std::uint64_t const budget : fewer_rungs) {
    auto const& rungs = found.rungs.front();
    at.push_back(static_cast<std::size_t>(std::ranges::find(rungs, budget) - rungs.begin()));
  }
  std::vector<std::size_t> members;
  for (std::size_t i = 0; i < options.of; ++i) members.push_back(i);
  fr::SearchHistory const first = replay(*schedule, found.history, members, at);
  json line{{"rungs", found.rungs.front()},
            {"schedule", schedule->text()},
            {"curves", values_of(found.history)},
            {"first", compared(first, found.history, members)},
            {"resamples", json::array()}};
  line["first"]["values"] = values_of(first);
  for (std::uint64_t r = 0; r < options.resamples; ++r) {
    fr::Draw draw({.index = r, .seed = options.seed}, fr::draw_stream("bench.search"));
    std::vector<std::size_t> all(options.trials);
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = i;
    for (std::size_t i = 0; i < options.of; ++i) {
      std::swap(all[i], all[i + draw.below(all.size() - i)]);
    }
    all.resize(options.of);
    line["resamples"].push_back(
        compared(replay(*schedule, found.history, all, at), found.history, all));
  }
  return line;
}

/// A search as it is, in this process alone.
template <class Space, class Job>
json halving(Options const& options, Space const& space, Job const& job,
             std::uint64_t const& handed_out) {
  fr::SearchOutcome const found = fr::search(space, job, settings_of(options), halving_of(options));
  fr::RungResult const& first = found.history.trials.front().rungs.front();
  return {{"samples", samples_of(found.history)},
          {"batch", first.samples / first.steps},
          {"handed_out", handed_out},
          {"complete", fr::complete_trials(found.history).size()},
          {"winner", *found.winner},
          {"loss", found.best().values().front()},
          {"values", values_of(found.history)}};
}

}  // namespace frugal_bench
