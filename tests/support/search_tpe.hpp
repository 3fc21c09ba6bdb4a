// SPDX-License-Identifier: Apache-2.0
// Optuna's TPE on recorded histories: tests/reference/tpe.json, made by make_tpe.py.
#pragma once

#include <frugal/search/trials/candidate.hpp>
#include <frugal/search/trials/history.hpp>

#include <cstddef>
#include <cstdint>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

namespace frugal_test::support::search_tpe {

using frugal::Candidate;
using frugal::Choice;
using frugal::Int;
using frugal::LogUniform;
using frugal::SearchDomain;
using frugal::SearchHistory;
using frugal::SearchTrial;
using frugal::TrialState;
using frugal::Uniform;

inline nlohmann::json reference() {
  std::ifstream file(std::string(FRUGAL_TEST_DIR) + "/reference/tpe.json");
  return nlohmann::json::parse(file);
}

inline SearchDomain domain() {
  return {.recipes = {"adam", "sgd", "lion"},
          .settings = {
              {.name = "rate", .values = LogUniform{1e-5, 0.1}},
              {.name = "depth", .values = Int{.low = 2, .high = 16, .step = 2}},
              {.name = "momentum", .values = Uniform{0.5, 0.99}, .recipes = {1, 2}},
              {.name = "decay", .values = Choice{{"none", "linear", "cosine"}}, .recipes = {0}}}};
}

inline Candidate candidate_of(nlohmann::json const& recipe, nlohmann::json const& values) {
  Candidate found{.recipe = recipe.get<std::size_t>()};
  for (nlohmann::json const& each : values) {
    found.values.push_back(each.is_null() ? std::nullopt : std::optional(each.get<double>()));
  }
  return found;
}

inline SearchHistory history_of(nlohmann::json const& rows) {
  std::map<std::string, TrialState> const states{{"complete", TrialState::complete},
                                                 {"pruned", TrialState::pruned},
                                                 {"running", TrialState::running}};
  SearchHistory history;
  for (nlohmann::json const& row : rows) {
    SearchTrial& trial = history.trials.emplace_back();
    trial.state = states.at(row[0].get<std::string>());
    trial.candidate = candidate_of(row[1], row[2]);
    if (row[3].empty()) continue;
    auto const steps = row[4].get<std::uint64_t>();
    // Rungs end after 10, 30 and 90 steps.
    for (std::uint64_t const end : {10U, 30U, 90U}) {
      if (end > steps) break;
      trial.rungs.push_back({.steps = end, .values = row[3].get<frugal::ObjectiveValues>()});
    }
  }
  return history;
}

}  // namespace frugal_test::support::search_tpe
