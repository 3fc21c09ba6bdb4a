// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/search/results/results.hpp>

#include <frugal/base/number_text.hpp>
#include <frugal/inline.hpp>
#include <frugal/search/trials/candidate.hpp>
#include <frugal/search/trials/finalists.hpp>
#include <frugal/search/trials/history.hpp>
#include <frugal/search/trials/ranking.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <tuple>
#include <utility>
#include <variant>

namespace frugal {

FRUGAL_INLINE void SearchResults::require() const {
  domain.require();
  auto const refuse = [](std::string what, std::string why) {
    throw SettingsError({.what = std::move(what),
                         .where = "the results of a search",
                         .why = std::move(why),
                         .fix = "Give the domain, the rungs and the history of one search."});
  };
  std::size_t const count = history.trials.size();
  auto const exists = [&](std::size_t number, char const* name) {
    if (number < count) return;
    refuse(std::string(name) + " is trial " + std::to_string(number),
           "the history has " + detail::count_text(count, "trial"));
  };
  if (objectives.empty()) refuse("the search has no objective", "its trials cannot be compared");
  for (std::size_t number = 0; number < count; ++number) {
    SearchTrial const& trial = history.trials[number];
    std::string const name = "trial " + std::to_string(number);
    if (!is_candidate_of(domain, trial.candidate)) {
      refuse(name + " is not of the search space",
             "its recipe or a value of it is not in the domain");
    }
    if (trial.repeats) {
      exists(*trial.repeats, "the trial that is repeated");
    } else if (trial.bracket >= rungs.size() || trial.rungs.size() > rungs[trial.bracket].size()) {
      refuse(name + " has " + detail::count_text(trial.rungs.size(), "result"),
             "its bracket does not have so many rungs");
    }
    for (RungResult const& each : trial.rungs) {
      if (each.values.size() == objectives.size()) continue;
      refuse("a result of " + name + " has " + detail::count_text(each.values.size(), "value"),
             "the search has " + detail::count_text(objectives.size(), "objective"));
    }
  }
  if (winner) exists(*winner, "the winner");
  for (std::size_t const each : front) exists(each, "one on the Pareto front");
  for (auto const& [trial, rung] : order) {
    exists(trial, "one in the order of results");
    if (rung < history.trials[trial].rungs.size()) continue;
    refuse("the order of results has rung " + std::to_string(rung) + " of trial " +
               std::to_string(trial),
           "that trial has not ended it");
  }
}

FRUGAL_INLINE std::string SearchResults::value_text(Candidate const& of, std::size_t setting,
                                                    int digits) const {
  if (!of.values.at(setting)) return "-";
  double const value = *of.values[setting];
  Distribution const& values = domain.settings.at(setting).values;
  if (auto const* const choice = std::get_if<Choice>(&values)) {
    return choice->names.at(static_cast<std::size_t>(value));
  }
  if (std::holds_alternative<Int>(values)) return std::to_string(static_cast<std::int64_t>(value));
  return digits == 0 ? detail::shortest_text(value) : detail::general(value, digits);
}

FRUGAL_INLINE std::string SearchResults::settings_text(Candidate const& of, int digits) const {
  std::string text;
  for (std::size_t i = 0; i < domain.settings.size(); ++i) {
    if (!of.values.at(i)) continue;
    text += (text.empty() ? "" : ", ") + domain.settings[i].name + ' ' + value_text(of, i, digits);
  }
  return text;
}

FRUGAL_INLINE std::string SearchResults::label(Candidate const& of, int digits) const {
  std::string const settings = settings_text(of, digits);
  return settings.empty() ? recipe(of) : recipe(of) + ", " + settings;
}

FRUGAL_INLINE std::optional<double> SearchResults::value(SearchTrial const& of, std::size_t rung,
                                                         std::size_t objective) const {
  double const value = of.rungs.at(rung).values.at(objective);
  if (!std::isfinite(value)) return std::nullopt;
  return own_sign(objective, value);
}

FRUGAL_INLINE std::optional<std::uint64_t> SearchResults::budget(SearchTrial const& of,
                                                                 std::size_t rung) const {
  if (of.repeats || of.bracket >= rungs.size() || rung >= rungs[of.bracket].size())
    return std::nullopt;
  return rungs[of.bracket][rung];
}

FRUGAL_INLINE double SearchResults::seconds() const {
  double all = 0;
  for (SearchTrial const& each : history.trials) all += seconds(each);
  return all;
}

FRUGAL_INLINE std::uint64_t SearchResults::samples() const {
  std::uint64_t all = 0;
  for (SearchTrial const& each : history.trials) all += samples(each);
  return all;
}

FRUGAL_INLINE std::vector<std::size_t> SearchResults::ranked() const {
  std::vector<SearchTrial> const& trials = history.trials;
  std::vector<std::size_t> numbers;
  std::vector<ObjectiveValues> complete;
  for (std::size_t i = 0; i < trials.size(); ++i) {
    if (trials[i].repeats) continue;
    numbers.push_back(i);
    if (trials[i].state == TrialState::complete)
      complete.push_back(trials[i].values(objectives.size()));
  }
  std::vector<std::size_t> ranks(trials.size());
  if (objectives.size() > 1) {
    // Only complete trials have trained as long as each other.
    std::vector<std::size_t> const of_complete = pareto_ranks(complete);
    auto next = of_complete.begin();
    for (std::size_t const i : numbers) {
      if (trials[i].state == TrialState::complete) ranks[i] = *next++;
    }
  }
  auto const key = [&](std::size_t i) {
    SearchTrial const& trial = trials[i];
    int const state = trial.state == TrialState::complete ? 0
                      : trial.state == TrialState::failed ? 2
                                                          : 1;
    double const reached =
        trial.rungs.empty()
            ? 0
            : static_cast<double>(budget(trial, trial.rungs.size() - 1).value_or(0));
    double const value = detail::value_to_minimise(trial.values(objectives.size()).front());
    return std::tuple(state, state == 0 ? 0.0 : -reached, ranks[i], value, i);
  };
  std::ranges::sort(numbers, {}, key);
  return numbers;
}

FRUGAL_INLINE std::optional<SeedSpread> SeedSpread::of(std::vector<double> const& values) {
  if (values.empty()) return std::nullopt;
  SeedSpread spread{.count = values.size()};
  auto const n = static_cast<double>(values.size());
  for (double const each : values) spread.mean += each / n;
  if (values.size() == 1) return spread;
  double squares = 0;
  for (double const each : values) squares += (each - spread.mean) * (each - spread.mean);
  spread.deviation = std::sqrt(squares / (n - 1));
  return spread;
}

FRUGAL_INLINE OverSeeds over_seeds(SearchResults const& of, std::size_t trial) {
  OverSeeds known{.trial = trial, .repeats = repeats_of(of.history, trial)};
  known.objectives.resize(of.objectives.size());
  std::vector<std::vector<double>> fresh(of.objectives.size());
  for (std::size_t const number : known.repeats) {
    SearchTrial const& repeat = of.history.trials[number];
    if (!repeat.is_over()) ++known.running;
    // A repeat that is pruned or running has trained less.
    bool const complete = repeat.state == TrialState::complete;
    bool whole = complete;
    for (std::size_t m = 0; m < fresh.size(); ++m) {
      auto const value = of.value(repeat, m);
      whole = whole && value;
      if (value && complete) fresh[m].push_back(*value);
    }
    if (repeat.is_over() && !whole) ++known.lost;
  }
  for (std::size_t m = 0; m < fresh.size(); ++m) {
    OverSeeds::Objective& each = known.objectives[m];
    each.own = of.value(of.history.trials.at(trial), m);
    each.fresh = SeedSpread::of(fresh[m]);
    if (each.own && each.fresh) {
      double const more = each.fresh->mean - *each.own;
      each.flattered_by = of.objectives[m].maximise ? -more : more;
    }
    if (each.own) fresh[m].push_back(*each.own);
    each.all = SeedSpread::of(fresh[m]);
  }
  return known;
}

FRUGAL_INLINE std::vector<OverSeeds> finalists_over_seeds(SearchResults const& of) {
  std::vector<OverSeeds> finalists;
  for (std::size_t const trial : of.ranked()) {
    OverSeeds known = over_seeds(of, trial);
    if (!known.repeats.empty()) finalists.push_back(std::move(known));
  }
  std::size_t const by = of.winner_by.value_or(0);
  auto const key = [&](OverSeeds const& each) {
    auto const& fresh = each.objectives.at(by).fresh;
    if (!fresh) return std::numeric_limits<double>::infinity();
    return of.objectives.at(by).to_minimise(fresh->mean);
  };
  std::ranges::sort(finalists, {},
                    [&](OverSeeds const& each) { return std::pair(key(each), each.trial); });
  return finalists;
}

}  // namespace frugal

namespace frugal::detail {

FRUGAL_INLINE std::string seed_spread_text(SeedSpread const& of, std::string const& plus_minus) {
  std::string const mean = general(of.mean, 4);
  return of.deviation ? mean + ' ' + plus_minus + ' ' + general(*of.deviation, 2) : mean;
}

FRUGAL_INLINE std::string flattery_text(SearchResults const& of, OverSeeds const& known,
                                        std::size_t objective) {
  OverSeeds::Objective const& each = known.objectives.at(objective);
  if (!each.flattered_by) return "";
  std::string text = "Its " + of.objectives[objective].name + " in the search is " +
                     general(std::abs(*each.flattered_by), 2) +
                     (*each.flattered_by >= 0 ? " better" : " worse") + " than the mean of " +
                     count_text(each.fresh->count, "other seed");
  if (auto const error = each.fresh->error()) {
    text += " (standard error " + general(*error, 2) + ")";
  }
  if (*each.flattered_by > 0) text += ": expect the mean";
  return text + '.';
}

FRUGAL_INLINE std::string missing_repeats_text(OverSeeds const& known) {
  std::string text;
  if (known.running > 0) text = std::to_string(known.running) + " not over";
  if (known.lost > 0)
    text += (text.empty() ? "" : ", ") + std::to_string(known.lost) + " without a value";
  return text;
}

FRUGAL_INLINE std::optional<double> dollars_of_rung(SearchResults const& of,
                                                    SearchTrial const& trial, std::size_t rung) {
  auto const until = of.dollars(trial, rung);
  if (!until || rung == 0) return until;
  return *until - *of.dollars(trial, rung - 1);
}

}  // namespace frugal::detail

namespace frugal {

FRUGAL_INLINE std::vector<RungCost> rung_costs(SearchResults const& of) {
  std::map<std::pair<std::size_t, std::size_t>, RungCost> costs;
  for (SearchTrial const& trial : of.history.trials) {
    if (trial.repeats) continue;
    for (std::size_t rung = 0; rung < trial.rungs.size(); ++rung) {
      RungCost& cost = costs[{trial.bracket, rung}];
      cost.bracket = trial.bracket;
      cost.rung = rung;
      cost.budget = of.budget(trial, rung).value_or(0);
      ++cost.trials;
      if (trial.opened > rung + 1) ++cost.promoted;
      RungResult const before = rung == 0 ? RungResult{} : trial.rungs[rung - 1];
      cost.samples += std::max(trial.rungs[rung].samples, before.samples) - before.samples;
      cost.seconds += trial.rungs[rung].seconds - before.seconds;
      if (auto const dollars = detail::dollars_of_rung(of, trial, rung)) {
        cost.dollars = cost.dollars.value_or(0) + *dollars;
      }
      auto const value = of.value(trial, rung, 0);
      if (!value) continue;
      SearchObjective const& objective = of.objectives.front();
      bool const better =
          !cost.best || objective.to_minimise(*value) < objective.to_minimise(*cost.best);
      if (better) cost.best = value;
    }
  }
  std::vector<RungCost> list;
  for (auto const& [place, cost] : costs) list.push_back(cost);
  return list;
}

FRUGAL_INLINE TrialsCost repeat_cost(SearchResults const& of) {
  TrialsCost cost;
  for (SearchTrial const& trial : of.history.trials) {
    if (!trial.repeats) continue;
    ++cost.trials;
    cost.samples += SearchResults::samples(trial);
    cost.seconds += SearchResults::seconds(trial);
    if (auto const dollars = of.dollars(trial)) cost.dollars = cost.dollars.value_or(0) + *dollars;
  }
  return cost;
}

FRUGAL_INLINE TrialsCost attempt_cost(SearchResults const& of) {
  TrialsCost cost;
  for (SearchTrial const& trial : of.history.trials) {
    if (trial.repeats || trial.spent_seconds == 0) continue;
    ++cost.trials;
    cost.seconds += trial.spent_seconds;
  }
  if (auto const price = of.dollars_per_second()) cost.dollars = cost.seconds * *price;
  return cost;
}

FRUGAL_INLINE std::optional<double> share_of_full_training(SearchResults const& of) {
  std::uint64_t most = 0;
  for (auto const& bracket : of.rungs) {
    for (std::uint64_t const budget : bracket) most = std::max(most, budget);
  }
  double spent = 0, full = 0;
  for (SearchTrial const& trial : of.history.trials) {
    if (trial.repeats || trial.rungs.empty() || !is_finite(trial.rungs.front().values)) continue;
    RungResult const& last = trial.rungs.back();
    if (of.unit == "steps") {
      spent += static_cast<double>(last.steps);
    } else if (of.unit == "samples") {
      spent += static_cast<double>(last.samples);
    } else if (of.unit == "seconds") {
      spent += last.seconds;
    } else if (auto const dollars = of.dollars(trial);
               dollars && (of.unit == "dollars" || of.unit == "cents")) {
      spent += of.unit == "cents" ? 100 * *dollars : *dollars;
    } else {
      return std::nullopt;
    }
    full += static_cast<double>(most);
  }
  if (full == 0) return std::nullopt;
  return spent / full;
}

FRUGAL_INLINE std::vector<SpendingPoint> best_over_spending(SearchResults const& of) {
  auto order = of.order;
  std::set<std::pair<std::size_t, std::size_t>> const given(order.begin(), order.end());
  std::vector<std::tuple<bool, std::size_t, std::size_t, std::size_t>> rest;
  std::vector<SearchTrial> const& trials = of.history.trials;
  for (std::size_t i = 0; i < trials.size(); ++i) {
    for (std::size_t rung = 0; rung < trials[i].rungs.size(); ++rung) {
      if (given.contains({i, rung})) continue;
      rest.emplace_back(trials[i].repeats.has_value(), trials[i].bracket, rung, i);
    }
  }
  std::sort(rest.begin(), rest.end());
  for (auto const& [repeat, bracket, rung, trial] : rest) order.emplace_back(trial, rung);
  std::vector<SpendingPoint> points;
  double seconds = 0;
  std::optional<double> dollars;
  for (auto const& [number, rung] : order) {
    SearchTrial const& trial = trials.at(number);
    seconds += trial.rungs.at(rung).seconds - (rung == 0 ? 0 : trial.rungs[rung - 1].seconds);
    if (auto const more = detail::dollars_of_rung(of, trial, rung)) {
      dollars = dollars.value_or(0) + *more;
    }
    auto const value = of.value(trial, rung, 0);
    if (!value || trial.repeats) continue;
    SearchObjective const& objective = of.objectives.front();
    bool const better =
        points.empty() || objective.to_minimise(*value) < objective.to_minimise(points.back().best);
    if (better) points.push_back({seconds, dollars, *value});
  }
  double attempts = 0;
  for (SearchTrial const& trial : trials) attempts += trial.spent_seconds;
  seconds += attempts;
  if (dollars && attempts > 0) {
    auto const price = of.dollars_per_second();  // nothing, if all that was billed took no time
    dollars = price ? std::optional(*dollars + attempts * *price) : std::nullopt;
  }
  if (!points.empty() && points.back().seconds < seconds) {
    points.push_back({seconds, dollars, points.back().best});
  }
  return points;
}

}  // namespace frugal
