// SPDX-License-Identifier: Apache-2.0
// torch-free

#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <limits>
#include <string>
#include <thread>
#include <vector>

#include <frugal/search/journal.hpp>

#include "support/files.hpp"

namespace frugal_test::search_journal {

using namespace frugal;
using namespace frugal::detail;
using support::TemporaryFolder;
using support::text_of;

SearchDomain domain() {
  return {.recipes = {"a", "b"},
          .settings = {{.name = "lr", .values = LogUniform{1e-3, 1}, .recipes = {}},
                       {.name = "act", .values = Choice{{"relu", "gelu"}}, .recipes = {1}}}};
}
SearchIdentity identity(std::string const& seed = "1") {
  return {{"settings", "lr, \"act\""}, {"seed", seed}};
}
std::vector<SearchObjective> objectives() {
  return {{.name = "loss"}, {.name = "accuracy", .maximise = true}};
}

/// Two trials: one has ended a rung and goes on, one has failed.
void write(std::filesystem::path const& folder) {
  SearchJournal journal(folder, "test", domain(), objectives(), identity());
  SearchJournal::Session session(journal);
  JournalRecords& records = session.records();
  records.create(domain(),
                 {.candidate = {.recipe = 1, .values = {0.25, 1.0}}, .bracket = 2, .seed = 7});
  records.create(
      domain(),
      {.candidate = {.recipe = 0, .values = {0.5, std::nullopt}}, .seed = 8, .repeats = 0});
  RungResult const result{
      .steps = 10, .samples = 80, .seconds = 1.5, .dollars = 0.25, .values = {0.75, -0.5}};
  records.rung(0, 0, 10, result, false);
  records.open(0, 2);
  records.spent(0, 0.5);
  records.failure(1, 1, "a \"quoted\" error", 2.0);
  records.outcome(1, "out of memory");
  records.state(1, TrialState::failed, nullptr);
  session.commit();
}

TEST_CASE("what one process writes another one reads") {
  TemporaryFolder folder;
  write(folder.path());
  SearchJournal const journal(folder.path(), "test", domain(), objectives(), identity());
  SearchHistory const& history = journal.history();
  REQUIRE(history.trials.size() == 2);
  SearchTrial const& first = history.trials[0];
  CHECK(first.candidate == Candidate{.recipe = 1, .values = {0.25, 1.0}});
  CHECK(first.bracket == 2);
  CHECK(first.seed == 7);
  CHECK(first.opened == 2);
  CHECK(first.spent_seconds == 0.5);
  REQUIRE(first.rungs.size() == 1);
  CHECK(first.rungs[0].samples == 80);
  CHECK(first.rungs[0].dollars == 0.25);
  CHECK(first.rungs[0].values == ObjectiveValues{0.75, -0.5});
  CHECK(history.trials[1].repeats == 0);
  CHECK(history.trials[1].state == TrialState::failed);
  CHECK(history.trials[1].failures == 1);
  CHECK(history.trials[1].outcome == "out of memory");
  CHECK(history.trials[1].spent_seconds == 2);
  CHECK(journal.order() == std::vector<std::pair<std::size_t, std::size_t>>{{0, 0}});
}

TEST_CASE("a result that is not a number is read as one that is not") {
  TemporaryFolder folder;
  {
    SearchJournal journal(folder.path(), "test", domain(), objectives(), identity());
    SearchJournal::Session session(journal);
    session.records().create(domain(), {.candidate = {.recipe = 0, .values = {0.5, std::nullopt}}});
    double const nan = std::numeric_limits<double>::quiet_NaN();
    session.records().rung(0, 0, 10, {.values = {nan, 1}}, false);
    session.commit();
    CHECK(std::isnan(session.history().trials[0].rungs[0].values[0]));
  }
  SearchJournal const again(folder.path(), "test", domain(), objectives(), identity());
  CHECK(std::isnan(again.history().trials[0].rungs[0].values[0]));
}

TEST_CASE("a journal of another search, or with other directions, is refused") {
  TemporaryFolder folder;
  write(folder.path());
  auto const refusal = [&](auto const& given, auto const& named) {
    try {
      SearchJournal const journal(folder.path(), "test", domain(), given, named);
    } catch (SettingsError const& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  CHECK(refusal(objectives(), identity("2")).find("it has the seed '1', and the search has '2'") !=
        std::string::npos);
  CHECK(refusal(std::vector<SearchObjective>{{}}, identity()).find("directions of 2 objectives") !=
        std::string::npos);
}

TEST_CASE("another program's file is not cut, and a link is not followed") {
  TemporaryFolder folder;
  auto const refusal = [&] {
    try {
      SearchJournal const journal(folder.path(), "test", domain(), objectives(), identity());
    } catch (StoreError const& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  for (char const* const text :
       {"a diary without a line feed", "a diary\nof two lines", "{\"a\":"}) {
    std::ofstream(folder / "journal.log", std::ios::trunc) << text;
    CHECK(refusal().find("journal.log") != std::string::npos);
    CHECK(text_of(folder / "journal.log") == text);
  }
  std::filesystem::remove(folder / "journal.log");
  std::ofstream(folder / "other") << "{\"op_code\":";
  std::filesystem::create_symlink(folder / "other", folder / "journal.log");
  CHECK(refusal().find("the journal of the search is a symbolic link") != std::string::npos);
  CHECK(text_of(folder / "other") == "{\"op_code\":");
  // Of a process that was killed in its first write.
  std::filesystem::remove(folder / "journal.log");
  std::filesystem::rename(folder / "other", folder / "journal.log");
  CHECK(refusal().empty());
}

TEST_CASE("a torn last line is removed, wherever it ends, and a damaged one is named") {
  TemporaryFolder folder;
  write(folder.path());
  std::string const whole = text_of(folder / "journal.log");
  auto const last = whole.rfind('\n', whole.size() - 2) + 1;
  for (std::size_t cut = last + 1; cut < whole.size(); cut += 7) {
    std::ofstream(folder / "journal.log", std::ios::trunc) << whole.substr(0, cut);
    SearchJournal const journal(folder.path(), "test", domain(), objectives(), identity());
    CHECK(journal.torn_lines() == 1);
    CHECK(journal.history().trials[1].state == TrialState::running);
    CHECK(text_of(folder / "journal.log") == whole.substr(0, last));
  }
  std::ofstream(folder / "journal.log", std::ios::trunc) << whole.substr(0, last) << "{\n"
                                                         << whole.substr(last);
  CHECK_THROWS_WITH_AS(SearchJournal(folder.path(), "test", domain(), objectives(), identity()),
                       doctest::Contains("it is no JSON"), FormatError);
}

TEST_CASE("a process that ended in its first lines is continued") {
  TemporaryFolder folder;
  {
    SearchJournal const journal(folder.path(), "test", domain(), objectives(), identity());
  }
  std::string const whole = text_of(folder / "journal.log");
  for (std::size_t cut = 1; cut < whole.size(); cut += 9) {
    std::ofstream(folder / "journal.log", std::ios::trunc) << whole.substr(0, cut);
    SearchJournal const journal(folder.path(), "test", domain(), objectives(), identity());
    std::string const again = text_of(folder / "journal.log");
    CHECK(again.find("\"op_code\":0") != std::string::npos);
    CHECK(again.find("\"seed\":\"1\"") != std::string::npos);
    SearchJournal const other(folder.path(), "test", domain(), objectives(), identity());
  }
}

TEST_CASE("processes that append at once lose no line") {
  TemporaryFolder folder;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      SearchJournal journal(folder.path(), "test", domain(), objectives(), identity());
      for (int i = 0; i < 10; ++i) {
        SearchJournal::Session session(journal);
        session.records().create(domain(),
                                 {.candidate = {.recipe = 0, .values = {0.5, std::nullopt}},
                                  .seed = session.history().trials.size()});
        session.commit();
      }
    });
  }
  for (std::thread& each : threads) each.join();
  SearchJournal const journal(folder.path(), "test", domain(), objectives(), identity());
  REQUIRE(journal.history().trials.size() == 40);
  for (std::size_t i = 0; i < 40; ++i) CHECK(journal.history().trials[i].seed == i);
}

SearchDomain const two_recipes{
    .recipes = {"a", "b"},
    .settings = {{.name = "lr", .values = LogUniform{1e-3, 1}, .recipes = {}},
                 {.name = "x", .values = Uniform{0, 1}, .recipes = {0}}}};

std::string refusal(std::filesystem::path const& folder, std::string const& candidate) {
  try {
    claim_folder(folder, candidate);
  } catch (StateError const& error) {
    return error.what();
  }
  return {};
}

TEST_CASE("a folder with checkpoints is that of one candidate, seed and search") {
  SearchTrial trial{.candidate = {.recipe = 1, .values = {0.1, std::nullopt}}, .seed = 7};
  SearchIdentity const identity{{"seed", "7"}};
  std::string const one = candidate_text(two_recipes, trial, identity);
  CHECK(one.starts_with("frugal candidate 1\nrecipe b\nlr 0.1\nseed 7\nsearch "));
  CHECK(candidate_text(two_recipes, trial, {{"seed", "8"}}) != one);

  TemporaryFolder folder;
  CHECK(refusal(folder.path(), one).empty());
  CHECK(text_of(folder / "candidate") == one);
  trial.candidate.values[0] = 0.2;
  std::string const other = candidate_text(two_recipes, trial, identity);
  // Without checkpoints there is nothing that could be taken for its own.
  CHECK(refusal(folder.path(), other).empty());
  std::filesystem::create_directories(folder / "checkpoints/step-00000001");
  CHECK(refusal(folder.path(), other).empty());
  CHECK(refusal(folder.path(), one).find("there it is 'lr 0.2', and in the journal 'lr 0.1'") !=
        std::string::npos);
  trial.seed = 9;
  CHECK(refusal(folder.path(), candidate_text(two_recipes, trial, identity))
            .find("there it is 'seed 7', and in the journal 'seed 9'") != std::string::npos);
  CHECK(text_of(folder / "candidate") == other);
  std::filesystem::remove(folder / "candidate");
  CHECK(refusal(folder.path(), other).find("it has no file that names its candidate") !=
        std::string::npos);
  // A link is not followed.
  std::ofstream(folder / "elsewhere") << other;
  std::filesystem::create_symlink(folder / "elsewhere", folder / "candidate");
  CHECK(!refusal(folder.path(), other).empty());
}

std::int64_t read(MicroBatchFile const& file) {
  std::int64_t samples = -1;
  file.read_into(samples);
  return samples;
}

TEST_CASE("an architecture has the micro-batch that was found for it, and no other one") {
  TemporaryFolder folder;
  MicroBatchFile const wide(folder.path(), "width 64"), narrow(folder.path(), "width 8");
  CHECK(read(wide) == -1);
  wide.write(16, true);
  CHECK(read(wide) == 16);
  CHECK(read(narrow) == -1);
  narrow.write(0, true);
  CHECK(read(narrow) > 1'000'000);  // the whole batch, and nothing to search for
}

TEST_CASE("a search that was cut short writes nothing, and memory that ran out later does") {
  TemporaryFolder folder;
  MicroBatchFile const file(folder.path(), "width 64");
  file.write(1, false);
  CHECK(read(file) == -1);
  file.write(16, true);
  file.write(32, false);
  CHECK(read(file) == 16);
  file.write(0, false);
  CHECK(read(file) == 16);
  file.write(8, false);
  CHECK(read(file) == 8);
}

}  // namespace frugal_test::search_journal
