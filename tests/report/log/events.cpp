// SPDX-License-Identifier: Apache-2.0
// The contents of a log whose run is saved, killed, resumed and rolled back.
#include <doctest/doctest.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include <frugal/policy/checkpoint.hpp>
#include <frugal/policy/optimize.hpp>
#include <frugal/policy/rollback.hpp>
#include <frugal/report/log.hpp>
#include <frugal/trainer.hpp>

#include "support/files.hpp"
#include "support/running.hpp"

namespace frugal_test::policy_log_events {

using namespace frugal_test::support;
using frugal::Every;
using frugal::Log;
using frugal::Optimize;
using frugal::SGD;
using frugal::TensorDataset;

/// Every line of a file, parsed.
std::vector<Json> events_in(std::filesystem::path const& path) {
  std::vector<Json> all;
  for (std::string const& line : lines_of(text_of(path))) all.push_back(Json::parse(line));
  return all;
}

/// A run of 10 steps that saves at every fourth, killed before a micro-batch.
template <class... Ps>
frugal::Report saves(std::filesystem::path const& folder, int dies_at, Ps const&... policies) {
  struct Gone {};
  int batches = 0;
  auto const objective = [&](std::shared_ptr<Mlp>& module, frugal::Batch const& batch) {
    if (++batches == dies_at) throw Gone{};
    return frugal::CrossEntropy{}(module, batch);
  };
  frugal::Trainer trainer{
      std::make_shared<Mlp>(), objective,   frugal::Settings{.run_dir = folder, .epochs = 2},
      Optimize<SGD>{},         policies..., frugal::Checkpoint<Every<4>>{}};
  try {
    return trainer.fit(TensorDataset(samples(18), {.batch = 4}));
  } catch (Gone const&) {
    return {};
  }
}

TEST_CASE("a log that is a pipe does not end the run at its first save") {
  TemporaryFolder const folder;
  auto const path = folder / "pipe";
  REQUIRE(::mkfifo(path.c_str(), 0600) == 0);
  int const reader = ::open(path.c_str(), O_RDONLY | O_NONBLOCK);
  REQUIRE(reader >= 0);
  CHECK(saves(folder / "run", 0, Log<Every<1>>{.path = path}).steps == 10);
  ::close(reader);
}

TEST_CASE("a log whose reader goes away gives a note in advice, and the run continues") {
  TemporaryFolder const folder;
  auto const path = folder / "pipe";
  REQUIRE(::mkfifo(path.c_str(), 0600) == 0);
  int const reader = ::open(path.c_str(), O_RDONLY | O_NONBLOCK);
  REQUIRE(reader >= 0);
  Spy const goes{.each_step = [reader](frugal::Counters const& now) {
    if (now.step == 3) ::close(reader);
  }};
  frugal::Report const report = saves(folder / "run", 0, Log<Every<1>>{.path = path}, goes);
  CHECK(report.steps == 10);
  REQUIRE(report.warnings.size() == 1);
  CHECK(report.warnings[0].find("Broken pipe") != std::string::npos);
}

/// Moves a file after a step, like logrotate.
Spy rotates(std::filesystem::path const& file, std::uint64_t step) {
  return {.each_step = [=](frugal::Counters const& now) {
    if (now.step == step) std::filesystem::rename(file, file.string() + ".1");
  }};
}

TEST_CASE("a rotated log continues in the moved file, and a resumed run in a new one") {
  TemporaryFolder const folder;
  auto const file = folder / "metrics.jsonl";
  // Steps 1 to 6 and a save at 4 in the file that is moved after step 2; killed in step 7.
  saves(folder.path(), 7, Log<Every<1>>{}, rotates(file, 2));
  CHECK_FALSE(std::filesystem::exists(file));
  CHECK(events_in(folder / "metrics.jsonl.1").back().at("step") == 6);
  // Another program's file there is longer than the log was, and is not changed.
  std::string const other(4000, 'x');
  std::ofstream(file) << other << '\n';
  CHECK(saves(folder.path(), 0, Log<Every<1>>{}).steps == 10);
  std::string const text = text_of(file);
  CHECK(text.substr(0, other.size() + 1) == other + "\n");
  std::ofstream(file) << text.substr(other.size() + 1);
  auto const events = events_in(file);
  CHECK(events.front().at("event") == "resume");
  CHECK(events.back().at("event") == "end");
}

/// The number of each event in a log.
std::map<std::string, int> counts(std::filesystem::path const& file) {
  std::map<std::string, int> found;
  for (Json const& event : events_in(file)) ++found[event.at("event").get<std::string>()];
  return found;
}

/// 11 steps per epoch, with two windows whose loss is NaN.
template <class Lines = Every<100>, class... Ps>
frugal::Report broken(std::filesystem::path const& folder, int dies_at, Ps const&... policies) {
  struct Gone {};
  frugal::Batch data = samples(44);
  data.data = data.data.clone();
  data.data.narrow(0, 12, 4).fill_(std::nan(""));
  data.data.narrow(0, 24, 4).fill_(std::nan(""));
  int batches = 0;
  auto const objective = [&](std::shared_ptr<Mlp>& module, frugal::Batch const& batch) {
    if (++batches == dies_at) throw Gone{};
    return frugal::CrossEntropy{}(module, batch);
  };
  frugal::Trainer trainer{
      std::make_shared<Mlp>(), objective,    frugal::Settings{.run_dir = folder, .epochs = 1},
      Optimize<SGD>{},         Log<Lines>{}, policies...};
  try {
    return trainer.fit(TensorDataset(data, {.batch = 4, .shuffle = false}));
  } catch (Gone const&) {
    return {};
  }
}

TEST_CASE("two rollbacks to one kept state are two lines") {
  TemporaryFolder const folder;
  // With a line for each step: those of the first rollback stand before the second one.
  broken<Every<1>>(folder.path(), 0, frugal::Rollback<Every<100>>{});
  auto found = counts(folder / "metrics.jsonl");
  CHECK(found["rollback"] == 2);
  CHECK(found["begin"] == 1);
  CHECK(found["step"] == 9);
}

TEST_CASE("an event that is saved before its line is in the log of the resumed run") {
  TemporaryFolder const folder;
  // Back to step 0 at batch 4, a save at step 2, and no line of a step before the end.
  using Saves = frugal::Checkpoint<Every<2>>;
  broken(folder.path(), 8, frugal::Rollback<Every<100>>{}, Saves{});
  broken(folder.path(), 0, frugal::Rollback<Every<100>>{}, Saves{});
  auto const found = counts(folder / "metrics.jsonl");
  CHECK(found.at("begin") == 1);
  CHECK(found.at("rollback") == 2);
  CHECK(found.at("resume") == 1);
  CHECK(found.at("epoch") == 1);
  CHECK(found.at("end") == 1);
}

/// The lines of a log without what differs between runs. `resume` lines are left out.
std::vector<std::string> contents(std::filesystem::path const& file) {
  std::vector<std::string> lines;
  for (Json event : events_in(file)) {
    if (event.at("event") == "resume") continue;
    event.erase("seconds");
    event.erase("memory_bytes");
    lines.push_back(event.dump());
  }
  return lines;
}

/// Kills runs at several moments, twice each, and expects the log of one that is not killed.
template <class Lines>
void killed_at_each_moment() {
  TemporaryFolder const folder;
  frugal::Rollback<Every<100>> const rollback;
  frugal::Checkpoint<Every<2>> const saves;
  frugal::Report const whole = broken<Lines>(folder / "whole", 0, rollback, saves);
  REQUIRE(whole.steps == 9);
  auto const expected = contents(folder / "whole/metrics.jsonl");
  REQUIRE(counts(folder / "whole/metrics.jsonl").at("rollback") == 2);
  // Before, between and after the two rollbacks, at a save and off it. At 5 and 11 the last
  // checkpoint is of the branch that a rollback has just removed.
  for (int const dies_at : {1, 4, 5, 7, 9, 11, 14, 16, 20}) {
    CAPTURE(dies_at);
    auto const run = folder / std::to_string(dies_at);
    int starts = 0;
    auto const start = [&](int dies_at_batch) {
      ++starts;
      return broken<Lines>(run, dies_at_batch, rollback, saves);
    };
    // Dies twice there: if nothing was saved in between, both resumes use the same checkpoint.
    for (int i = 0; i < 2; ++i) start(dies_at);
    frugal::Report report = start(0);
    // If the killed run had saved its end, this start trained nothing and says so.
    std::erase_if(report.warnings, [](std::string const& line) {
      return line.find("trained nothing") != std::string::npos;
    });
    CHECK(report.steps == whole.steps);
    CHECK(counts(run / "metrics.jsonl")["resume"] == starts - 1);
    CHECK(contents(run / "metrics.jsonl") == expected);
    CHECK(report.warnings == whole.warnings);
  }
}

TEST_CASE("whenever a run is killed, its log has each event once, and a line for each resume") {
  killed_at_each_moment<Every<100>>();
}
TEST_CASE("so it is with a line for each step, which a rollback cuts off before the kill") {
  killed_at_each_moment<Every<1>>();
}

}  // namespace frugal_test::policy_log_events
