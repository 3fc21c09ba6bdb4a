// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <doctest/doctest.h>

#include <frugal/search/results/table.hpp>

#include "support/search_synthetic.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace frugal_test::search_table {

using frugal::search_table;
using frugal::SearchResults;
using frugal::SearchTrial;
using frugal::TrialState;

bool has(std::string const& text, std::string const& part) {
  return text.find(part) != std::string::npos;
}

/// Two rungs, a winner with a repeat, a pruned trial and one that failed.
SearchResults few() {
  SearchResults of{.domain = synthetic::domain(), .rungs = {{100, 400}}, .dollars_per_hour = 3.6};
  of.objectives = {{.name = "accuracy", .maximise = true}};
  auto const add = [&](std::size_t recipe, std::vector<double> const& values, TrialState state) {
    SearchTrial trial{.candidate = {.recipe = recipe,
                                    .values = {0.0031622776601683794, 128.0, std::nullopt, 1.0}},
                      .opened = std::max<std::size_t>(values.size(), 1),
                      .state = state};
    if (recipe == 1) trial.candidate.values[2] = 0.9;
    for (double const each : values) {
      std::size_t const steps = trial.rungs.empty() ? 100 : 400;
      trial.rungs.push_back({.steps = steps,
                             .samples = 2 * steps,
                             .seconds = static_cast<double>(steps),
                             .values = {-each}});
    }
    of.history.trials.push_back(trial);
  };
  add(1, {0.5}, TrialState::pruned);
  add(0, {0.6, 0.75}, TrialState::complete);
  add(2, {}, TrialState::failed);
  add(0, {0.6, 0.7}, TrialState::complete);
  of.history.trials[2].outcome = "out of memory";
  of.history.trials[3].repeats = 1;
  of.winner = 1;
  return of;
}

TEST_CASE("the table has settings, values, rungs, costs and states, the best first") {
  std::string const text = search_table(few());
  CHECK(has(
      text,
      "3 trials of 3 recipes, the best first; accuracy is maximised.\n\n"
      "#  trial  recipe        lr        width  momentum  norm   accuracy  rung    samples  time   "
      "cost    state\n"
      "1  1*     AdamW + BF16  0.003162  128    -         layer  0.75      2 of 2  800      6m40s  "
      "$0.400  complete\n"
      "2  0      SGD           0.003162  128    0.9       layer  0.5       1 of 2  200      1m40s  "
      "$0.100  pruned\n"
      "3  2      Lion + BF16   0.003162  128    -         layer  -         0 of 2  0        0s     "
      "$0.00   failed\n"));
}

TEST_CASE("the winner comes with fresh seeds, and with what the search has cost") {
  std::string const text = search_table(few());
  CHECK(has(
      text,
      "Winner: trial 1, AdamW + BF16, lr 0.003162, width 128, norm layer; accuracy 0.75 (0.7 over "
      "1 "
      "other seed).\n"
      "Its accuracy in the search is 0.05 better than the mean of 1 other seed: expect the mean.\n"
      "Cost: 15m00s on workers, 1800 samples, $0.900 ($0.400 of them for the winner); the trials "
      "trained 62.5% of what all of them in full would have.\n"));
  CHECK(has(
      text,
      "1*        AdamW + BF16, lr 0.00316, width 128, norm layer  0.75      0.7          0.05"));
  CHECK(has(text,
            "1        1     100    2       1      0.6            400      3m20s  $0.200 (22%)\n"));
  CHECK(has(text,
            "seeds    -     -      1       -      -              800      6m40s  $0.400 (44%)\n"));
}

TEST_CASE("failures, dropped recipes and warnings are sentences") {
  SearchResults of = few();
  CHECK(has(search_table(of),
            "Trial 2 failed, Lion + BF16, lr 0.00316, width 128, norm layer: out of memory.\n"));
  of.dropped = {{"Muon + FP16", "Muon does not take FP16."}};
  of.warnings = {"lr is at its highest value."};
  of.stopped_by = "budget";
  of.interrupted = true;
  std::string const text = search_table(of);
  CHECK(has(text, "'Muon + FP16' is not possible. Muon does not take FP16.\n"));
  CHECK(has(text, "Warning: lr is at its highest value.\n"));
  CHECK(has(text, "The search ended because its budget is spent.\n"));
  CHECK(has(text, "A worker was preempted: start the search again, and it goes on.\n"));
  CHECK(!has(search_table(few()), "Warning"));
}

TEST_CASE("a repeat without a value is named, and not in the mean") {
  SearchResults of = few();
  of.history.trials.push_back(of.history.trials[3]);
  of.history.trials.back().rungs.back().values = {std::nan("")};
  std::string const text = search_table(of);
  CHECK(has(text, "2 (1 without a value)"));
  CHECK(has(text, "(0.7 over 1 other seed)"));
}

TEST_CASE("20 rows are enough unless more are asked for") {
  SearchResults const of = synthetic::search(64);
  auto const lines = [](std::string const& text) { return std::ranges::count(text, '\n'); };
  std::string const some = search_table(of), all = search_table(of, 100);
  CHECK(has(some, "... and 44 further trials.\n"));
  CHECK(!has(all, "further"));
  CHECK(lines(all) == lines(some) + 43);
  CHECK(has(search_table(of, 2), "further ones failed."));
}

TEST_CASE("costs that a CostMeter has billed come before the price, and need none") {
  SearchResults of = few();
  of.dollars_per_hour.reset();
  of.history.trials[0].rungs[0].dollars = 1;
  of.history.trials[1].rungs[0].dollars = 2;
  of.history.trials[1].rungs[1].dollars = 5;
  of.history.trials[3].rungs[0].dollars = 2;
  of.history.trials[3].rungs[1].dollars = 3;
  std::string const text = search_table(of);
  CAPTURE(text);
  CHECK(has(text, "2 of 2  800      6m40s  $5.00  complete\n"));
  CHECK(has(text, "1800 samples, $9.00 ($5.00 of them for the winner)"));
  CHECK(has(text, "400      3m20s  $3.00 (22%)\n"));
  CHECK(has(text, "600      5m00s  $3.00 (33%)\n"));
  CHECK(has(text, "800      6m40s  $3.00 (44%)\n"));
}

TEST_CASE("without a price there are no dollars, and without a complete trial no winner") {
  SearchResults of = few();
  of.dollars_per_hour.reset();
  CHECK(!has(search_table(of), "$"));
  std::string const failed = search_table(synthetic::search(9, 1, true));
  CHECK(has(failed, "No trial is complete: there is no winner.\n"));
  CHECK(!has(failed, "Cost of each rung"));
}

TEST_CASE("several objectives have a column each, and the Pareto front has marks") {
  SearchResults const of = synthetic::search(64, 2);
  std::string const text = search_table(of);
  CHECK(has(text, "accuracy is maximised, latency is minimised."));
  CHECK(has(text, "* on the Pareto front\n"));
  CHECK(has(text, ' ' + std::to_string(of.front.front()) + "* "));
}

TEST_CASE("many settings share a column") {
  SearchResults of = few();
  for (char const* name : {"a", "b"}) {
    of.domain.settings.push_back({.name = name, .values = frugal::Uniform{0, 1}});
    for (SearchTrial& trial : of.history.trials) trial.candidate.values.emplace_back(0.25);
  }
  std::string const text = search_table(of);
  CHECK(has(text, "#  trial  recipe        settings "));
  CHECK(has(text, "lr 0.00316, width 128, norm layer, a 0.25, b"));
}

TEST_CASE("results that do not fit each other are refused") {
  SearchResults of = few();
  of.winner = 9;
  CHECK_THROWS_AS(search_table(of), frugal::SettingsError);
}

}  // namespace frugal_test::search_table
