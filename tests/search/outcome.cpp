// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <doctest/doctest.h>

#include <frugal/search/outcome.hpp>

#include "support/files.hpp"

#include <filesystem>
#include <sstream>
#include <string>

namespace frugal_test::search_outcome {

using namespace frugal;
using support::TemporaryFolder;

SearchOutcome outcome() {
  SearchOutcome made;
  made.domain = {.recipes = {"AdamW"},
                 .settings = {{.name = "lr", .values = LogUniform{1e-3, 1}, .recipes = {}}}};
  made.rungs = {{9}};
  made.folder = "searches/first";
  for (int i = 0; i < 3; ++i) {
    made.history.trials.push_back(
        {.candidate = {.recipe = 0, .values = {0.1}}, .outcome = "out of memory"});
    made.history.trials.back().state = TrialState::failed;
  }
  made.history.trials[2].outcome.clear();
  made.history.trials[2].state = TrialState::pruned;
  return made;
}

TEST_CASE("the exit code is that of the trainer: 0, 75 to be started again, 130 after Ctrl-C") {
  SearchOutcome made;
  CHECK(made.exit_code() == 0);
  made.interrupted = true;
  CHECK(made.exit_code() == 75);
  made.by_ctrl_c = true;
  CHECK(made.exit_code() == 130);
}

TEST_CASE("a search without a winner says how its trials have ended, each reason once") {
  SearchOutcome const none = outcome();
  std::string text;
  try {
    static_cast<void>(none.best());
  } catch (SearchError const& error) {
    text = error.what();
  }
  CAPTURE(text);
  CHECK(text.find("none of the 3 trials of the search has a result") != std::string::npos);
  CHECK(text.find("searches/first") != std::string::npos);
  CHECK(text.find("1 ended with: a rung before the last one; 2 ended with: out of memory") !=
        std::string::npos);
  CHECK_THROWS_WITH_AS(SearchOutcome{}.require_winner(),
                       doctest::Contains("no trial has trained to its end"), SearchError);
}

TEST_CASE("the winner, the table and the page are those of the results") {
  TemporaryFolder folder;
  SearchOutcome found = outcome();
  found.folder = folder.path();
  found.history.trials[1].state = TrialState::complete;
  found.history.trials[1].rungs.push_back({.steps = 9, .samples = 72, .values = {0.125}});
  found.winner = 1;
  CHECK(&found.best() == &found.history.trials[1]);
  std::ostringstream table;
  table << found;
  CHECK(table.str() == search_table(found));
  CHECK(table.str().find("0.125") != std::string::npos);
  found.code = "trainer.optimizer().lr = 0.1;";
  found.page(folder / "page.html");
  std::string const page = support::text_of(folder / "page.html");
  CHECK(page.find("Search in " + folder.path().string()) != std::string::npos);
  CHECK(page.find("trainer.optimizer().lr = 0.1;") != std::string::npos);
  CHECK_THROWS_AS(found.page(folder / "no/such/page.html"), StoreError);
}

}  // namespace frugal_test::search_outcome
