// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <frugal/search/engine.hpp>

#include "support/files.hpp"

#include <doctest/doctest.h>

#include <frugal/base/file.hpp>
#include <frugal/search/sampler/sampler.hpp>
#include <frugal/search/schedule/successive_halving.hpp>
#include <frugal/search/schedule/whole_trials.hpp>

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <limits>
#include <memory>
#include <random>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

namespace frugal_test::search_engine {

using namespace frugal;
using namespace frugal::detail;
using support::TemporaryFolder;

/// A trial that has ended a rung, and has spent 20 s on the next one since.
SearchTask second_rung(std::optional<double> dollars) {
  SearchTask task{.trial = 4, .rung = 1, .seconds_before = 120};
  task.of.rungs = {
      {.steps = 9, .samples = 72, .seconds = 100, .dollars = dollars, .values = {0.5}}};
  return task;
}

TEST_CASE("a rung that fails keeps the steps of the rung before, and its values are no numbers") {
  TaskOutcome outcome;
  outcome.fail(TaskOutcome::Kind::failure, "out of memory", second_rung(0.25), 2);
  CHECK(outcome.kind == TaskOutcome::Kind::failure);
  CHECK(outcome.text == "out of memory");
  CHECK(outcome.result.steps == 9);
  CHECK(outcome.result.samples == 72);
  REQUIRE(outcome.result.values.size() == 2);
  CHECK(std::isnan(outcome.result.values[0]));
  CHECK(!outcome.result.dollars);  // pay() adds them

  TaskOutcome later{.result = {.steps = 20, .samples = 160}};
  later.fail(TaskOutcome::Kind::error, "no disk", second_rung({}), 1);
  CHECK(later.result.steps == 20);
  CHECK(later.result.samples == 160);
}

TEST_CASE("a trial pays for all of its attempts, those that fail as well") {
  SUBCASE("at a price") {
    TaskOutcome outcome;
    outcome.fail(TaskOutcome::Kind::failure, "NaN", second_rung(0.1), 1);
    outcome.pay(second_rung(0.1), 60, 3.6);
    CHECK(outcome.seconds == 60);
    CHECK(outcome.result.seconds == 180);
    CHECK(*outcome.result.dollars == doctest::Approx(0.18));
  }
  SUBCASE("at a price, in its first rung") {
    TaskOutcome outcome;
    outcome.pay({.seconds_before = 20}, 60, 3.6);
    CHECK(*outcome.result.dollars == doctest::Approx(0.08));
  }
  SUBCASE("after a rung that CostMeter has measured, at a price of its own") {
    TaskOutcome outcome;
    outcome.pay(second_rung(5), 60, 3.6);
    CHECK(*outcome.result.dollars == doctest::Approx(5 + 0.08));
  }
  SUBCASE("without a price, at the rate that CostMeter has measured before") {
    TaskOutcome outcome;
    outcome.pay(second_rung(5), 60, {});
    CHECK(*outcome.result.dollars == doctest::Approx(5 + 80 * 0.05));
  }
  SUBCASE("CostMeter's own figure is not changed") {
    TaskOutcome outcome{.result = {.dollars = 7}};
    outcome.pay(second_rung(5), 60, 3.6);
    CHECK(outcome.result.dollars == 7);
  }
  SUBCASE("nothing without a price") {
    TaskOutcome outcome;
    outcome.pay(second_rung({}), 60, {});
    CHECK(!outcome.result.dollars);
  }
}

TEST_CASE("pauses become longer, and the lock is named once") {
  std::ostringstream said;
  Patience patience(std::chrono::milliseconds(100), said);
  auto const begin = std::chrono::steady_clock::now();
  patience.wait("trials/0003/claim");  // 20 ms
  patience.wait("trials/0003/claim");  // 60 ms
  CHECK(said.str().empty());
  patience.wait("trials/0003/claim");  // 140 ms
  CHECK(std::chrono::steady_clock::now() - begin >= std::chrono::milliseconds(140));
  CHECK(said.str() ==
        "frugal: the search waits for another worker. If that one is gone: trials/0003/claim\n");
  patience.wait("trials/0004/claim");
  CHECK(said.str().find("0004") == std::string::npos);
}

SearchDomain domain() {
  return {.recipes = {"one", "two"},
          .settings = {{.name = "lr", .values = LogUniform{1e-4, 1}, .recipes = {}},
                       {.name = "width", .values = Int{1, 64}, .recipes = {1}}}};
}
using Bind = std::function<std::unique_ptr<SearchSchedule const>(SearchLimits const&)>;

/// A search whose trials count their steps in a file, as a checkpoint does.
struct FakeSearch {
  std::filesystem::path folder;
  Bind bind;
  std::uint64_t horizon = 27;
  std::uint64_t interval = 4;  ///< steps between two saves
  std::chrono::microseconds step_time{0};
  double dollars = 0;  ///< that a meter bills for each rung; 0: there is none
  EngineRules rules{.seed = 11, .finalists = {.count = 2, .seeds = 3}};
  /// What a trial comes to; it may throw an error of the trial.
  std::function<double(SearchTrial const&, std::uint64_t)> value = [](SearchTrial const& trial,
                                                                      std::uint64_t step) {
    double const quality = std::abs(std::log(*trial.candidate.values[0]) + 4);
    double const noise = static_cast<double>(trial.seed % 7) * 0.01;
    return quality + noise + 1 / static_cast<double>(step);
  };

  static std::uint64_t read(std::filesystem::path const& file) {
    std::ifstream in(file);
    std::uint64_t step = 0;
    in >> step;
    return step;
  }

  TaskOutcome train(SearchTask const& task, std::filesystem::path const& at) const {
    std::filesystem::create_directories(at / "checkpoints");
    std::uint64_t step = read(at / "step");
    std::uint64_t const until = task.until.value_or(horizon);
    while (step < until) {
      if (step_time.count() != 0) std::this_thread::sleep_for(step_time);
      std::ofstream(at / "steps", std::ios::app) << 's';
      if (++step % interval == 0 || step == until) {
        write_whole_file(at / "step", std::to_string(step), Durable::no);
        std::filesystem::create_directory(at / "checkpoints" / ("step-" + std::to_string(step)));
      }
    }
    TaskOutcome outcome;
    outcome.result = {.steps = step,
                      .samples = 8 * step,
                      .seconds = task.seconds_before + 0.5,
                      .values = {value(task.of, step)}};
    if (dollars != 0) outcome.result.dollars = dollars * static_cast<double>(task.rung + 1);
    return outcome;
  }

  /// Works until nothing is left, and returns what the engine said then.
  SearchEngine::Kind work(SearchHistory& history) const {
    SearchLimits const limits{.horizon = horizon};
    auto const schedule = bind(limits);
    SearchJournal journal(folder, "test", domain(), {{}}, {{"schedule", schedule->text()}});
    SearchEngine engine(
        journal, *schedule,
        [&](SearchHistory const& seen, std::size_t trial) {
          return RandomSampler{}.suggest(journal.domain(), seen, trial, rules.seed);
        },
        rules);
    while (true) {
      SearchTask task;
      auto const kind = engine.next(task);
      if (kind == SearchEngine::Kind::wait) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
        continue;
      }
      if (kind != SearchEngine::Kind::task) {
        history = journal.history();
        return kind;
      }
      TaskOutcome outcome;
      try {
        outcome = train(task, engine.folder_of(task.trial));
      } catch (std::exception const& error) {
        outcome.kind = TaskOutcome::Kind::error;
        outcome.text = error.what();
      }
      engine.record(task, outcome);
    }
  }
  SearchHistory run() const {
    SearchHistory history;
    CHECK(work(history) == SearchEngine::Kind::done);
    return history;
  }

  pid_t start() const {
    pid_t const child = ::fork();
    if (child != 0) return child;
    SearchHistory ignored;
    try {
      work(ignored);
    } catch (std::exception const& error) {
      std::fprintf(stderr, "%s\n", error.what());
      ::_exit(1);
    }
    ::_exit(0);
  }
  /// With several processes at once, of which so many are killed while they work, and started again.
  SearchHistory run_in(int workers, int kills = 0) const {
    std::vector<pid_t> pids;
    for (int i = 0; i < workers; ++i) pids.push_back(start());
    std::mt19937 random(3);
    for (int left = kills; left != 0; --left) {
      std::this_thread::sleep_for(std::chrono::microseconds(random() % 24000));
      pid_t& victim = pids[random() % pids.size()];
      REQUIRE(::kill(victim, SIGKILL) == 0);
      int status = 0;
      ::waitpid(victim, &status, 0);
      CAPTURE(left);
      REQUIRE(WIFSIGNALED(status));  // it had not ended
      victim = start();
    }
    for (pid_t const each : pids) {
      int status = -1;
      ::waitpid(each, &status, 0);
      CHECK(status == 0);
    }
    return run();
  }
};

/// What a search has decided and found; times are not compared.
std::string decisions(SearchHistory const& history) {
  std::string text;
  for (SearchTrial const& each : history.trials) {
    text += std::to_string(each.candidate.recipe);
    for (auto const& value : each.candidate.values)
      text += value ? " " + std::to_string(*value) : " -";
    text += " bracket " + std::to_string(each.bracket) + " seed " + std::to_string(each.seed);
    if (each.repeats) text += " repeats " + std::to_string(*each.repeats);
    for (RungResult const& rung : each.rungs) {
      text += " | " + std::to_string(rung.steps) + " " + std::to_string(rung.values[0]);
    }
    text += " = " + std::to_string(static_cast<int>(each.state)) + "\n";
  }
  return text;
}

Bind halving() {
  return [](SearchLimits const& limits) {
    return SuccessiveHalving<>{.trials = 18, .least = 3}.bind(limits);
  };
}
Bind hyperband() {
  return [](SearchLimits const& limits) { return Hyperband<>{.least = 3}.bind(limits); };
}
Bind asha() {
  return [](SearchLimits const& limits) { return Asha<>{.trials = 24, .least = 3}.bind(limits); };
}

std::uint64_t steps_in(std::filesystem::path const& folder) {
  std::uint64_t all = 0;
  for (auto const& each : std::filesystem::directory_iterator(folder / "trials")) {
    all += std::filesystem::file_size(each.path() / "steps");
  }
  return all;
}
std::uint64_t steps_of(SearchHistory const& history) {
  std::uint64_t all = 0;
  for (SearchTrial const& each : history.trials) all += each.rungs.back().steps;
  return all;
}

TEST_CASE("one, two and four workers decide alike, and no step is trained twice") {
  for (Bind const& bind : {halving(), hyperband()}) {
    TemporaryFolder one, two, four;
    SearchHistory const alone = FakeSearch{.folder = one.path(), .bind = bind}.run();
    CHECK(steps_in(one.path()) == steps_of(alone));
    using std::chrono::microseconds;
    SearchHistory const pair =
        FakeSearch{.folder = two.path(), .bind = bind, .step_time = microseconds(50)}.run_in(2);
    SearchHistory const many =
        FakeSearch{.folder = four.path(), .bind = bind, .step_time = microseconds(50)}.run_in(4);
    CHECK(decisions(pair) == decisions(alone));
    CHECK(decisions(many) == decisions(alone));
    CHECK(steps_in(four.path()) == steps_of(many));
  }
}

/// Workers live for no longer than a save takes.
EngineRules often_killed() {
  EngineRules rules = FakeSearch{}.rules;
  rules.most_kills = 1000;
  return rules;
}

TEST_CASE("200 kills change no decision, lose no trial, and repeat less than an interval each") {
  constexpr int kills = 100;
  Bind const many = [](SearchLimits const& limits) {
    return SuccessiveHalving<>{.trials = 54, .least = 3}.bind(limits);
  };
  Bind const rounds = [](SearchLimits const& limits) {
    return Hyperband<>{.least = 3, .rounds = 2}.bind(limits);
  };
  for (Bind const& bind : {many, rounds}) {
    TemporaryFolder calm, killed;
    SearchHistory const alone = FakeSearch{.folder = calm.path(), .bind = bind}.run();
    FakeSearch const search{.folder = killed.path(),
                            .bind = bind,
                            .interval = 2,
                            .step_time = std::chrono::milliseconds(10),
                            .rules = often_killed()};
    SearchHistory const found = search.run_in(3, kills);
    CHECK(decisions(found) == decisions(alone));
    CHECK(steps_in(killed.path()) >= steps_of(alone));
    CHECK(steps_in(killed.path()) <= steps_of(alone) + kills * search.interval);
  }
}

TEST_CASE("a replay of the journal of Asha decides alike, with four workers and kills") {
  TemporaryFolder folder;
  FakeSearch const search{.folder = folder.path(),
                          .bind = asha(),
                          .interval = 2,
                          .step_time = std::chrono::milliseconds(15),
                          .rules = often_killed()};
  SearchHistory const found = search.run_in(4, 40);
  CHECK(found.trials.size() >= 24);
  auto const schedule = asha()({.horizon = 27});
  SearchDomain const space = domain();
  std::vector<SearchObjective> const objectives{{}};
  SearchIdentity const identity{{"schedule", schedule->text()}};
  JournalReader reader("journal", space, objectives, identity);
  std::ifstream file(folder / "journal.log");
  using Kind = SearchDecision::Kind;
  int creates = 0, promotes = 0, prunes = 0;
  for (std::string line; std::getline(file, line);) {
    SearchDecision const decision = schedule->next(reader.history());
    bool const repeat = line.find("\"repeats\"") != std::string::npos;
    CAPTURE(line);
    if (line.find("\"op_code\":4") != std::string::npos && !repeat) {
      CHECK(decision.kind == Kind::create);
      ++creates;
    } else if (line.find("frugal:opened") != std::string::npos) {
      CHECK(decision.kind == Kind::promote);
      CHECK(line.find("\"trial_id\":" + std::to_string(decision.trial) + ",") != std::string::npos);
      ++promotes;
    } else if (line.find("\"state\":2") != std::string::npos) {
      CHECK(decision.kind == Kind::prune);
      ++prunes;
    }
    reader.apply(line);
  }
  CHECK(creates == 24);
  CHECK(promotes >= 8);
  CHECK(prunes >= 12);
  CHECK(decisions(reader.history()) == decisions(found));
}

TEST_CASE("finalists are repeated with the seeds after that of the search") {
  TemporaryFolder folder;
  SearchHistory const found = FakeSearch{
      .folder = folder.path(), .bind = [](SearchLimits const& limits) {
        return RandomSearch{.trials = 6}.bind(limits);
      }}.run();
  REQUIRE(found.trials.size() == 6 + 2 * 2);
  std::vector<std::size_t> const best = complete_trials(found);
  for (std::size_t i = 6; i < 10; ++i) {
    REQUIRE(found.trials[i].repeats.has_value());
    CHECK(*found.trials[i].repeats == best[(i - 6) / 2]);
    CHECK(found.trials[i].seed == 12 + (i - 6) % 2);
    CHECK(found.trials[i].candidate == found.trials[*found.trials[i].repeats].candidate);
    CHECK(found.trials[i].state == TrialState::complete);
  }
  CHECK(winner_of(found) == best.front());
}

TEST_CASE("an error is tried again, and a trial that fails three times is left with its error") {
  TemporaryFolder folder;
  int calls = 0;
  FakeSearch search{.folder = folder.path(), .bind = halving()};
  auto const usual = search.value;
  search.value = [&](SearchTrial const& trial, std::uint64_t step) {
    if (trial.candidate.recipe == 1) {
      ++calls;
      throw std::runtime_error("the disk of width " + std::to_string(*trial.candidate.values[1]));
    }
    return usual(trial, step);
  };
  SearchHistory const found = search.run();
  int failed = 0;
  for (SearchTrial const& each : found.trials) {
    if (each.candidate.recipe == 0) {
      CHECK(each.state != TrialState::failed);
      continue;
    }
    CHECK(each.state == TrialState::failed);
    CHECK(each.outcome.find("the disk of width") == 0);
    ++failed;
  }
  CHECK(failed > 3);
  CHECK(calls == 3 * failed);
}

TEST_CASE("results that are not numbers end their trials, and the search goes on") {
  TemporaryFolder folder;
  FakeSearch search{.folder = folder.path(), .bind = halving()};
  search.value = [](SearchTrial const&, std::uint64_t) {
    return std::numeric_limits<double>::quiet_NaN();
  };
  SearchHistory const found = search.run();
  CHECK(found.trials.size() == 18);
  for (SearchTrial const& each : found.trials) CHECK(each.state == TrialState::failed);
  CHECK(!winner_of(found).has_value());
}

TEST_CASE("the time of all trials is a budget") {
  TemporaryFolder folder;
  FakeSearch search{.folder = folder.path(), .bind = halving()};
  search.rules.seconds = 4.2;  // half a second a rung
  SearchHistory history;
  CHECK(search.work(history) == SearchEngine::Kind::budget);
  CHECK(history.trials.size() == 9);
  search.rules.seconds = 1e6;
  TemporaryFolder other;
  CHECK(decisions(search.run()) ==
        decisions(FakeSearch{.folder = other.path(), .bind = halving()}.run()));
}

TEST_CASE(
    "the time of a rung that another worker trains is spent, too, until that worker is gone") {
  TemporaryFolder folder;
  auto const schedule = halving()({.horizon = 27});
  auto const suggest = [](SearchHistory const& seen, std::size_t trial) {
    return RandomSampler{}.suggest(domain(), seen, trial, 1);
  };
  EngineRules const rules{.seed = 1, .seconds = 0.2};
  SearchJournal one(folder.path(), "test", domain(), {{}}, {{"schedule", schedule->text()}});
  SearchJournal two(folder.path(), "test", domain(), {{}}, {{"schedule", schedule->text()}});
  SearchEngine first(one, *schedule, suggest, rules), second(two, *schedule, suggest, rules);
  SearchTask task, other;
  REQUIRE(first.next(task) == SearchEngine::Kind::task);
  CHECK(!second.is_spent());
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  CHECK(second.is_spent());
  CHECK(second.next(other) == SearchEngine::Kind::budget);
  CHECK(second.held_by().find("claim") != std::string::npos);
  task.claim.reset();  // killed
  REQUIRE(second.next(other) == SearchEngine::Kind::task);
  CHECK(other.trial == task.trial);
}

/// One process that is killed again and again while it trains trial 0: the next one goes on with its journal.
struct Killed {
  TemporaryFolder folder{};
  std::unique_ptr<SearchSchedule const> schedule = halving()({.horizon = 27});
  SearchJournal journal{folder.path(), "test", domain(), {{}}, {{"schedule", schedule->text()}}};
  SearchEngine engine;
  SearchTask task{};

  explicit Killed(EngineRules const& rules)
      : engine(
            journal, *schedule,
            [](SearchHistory const& seen, std::size_t trial) {
              return RandomSampler{}.suggest(domain(), seen, trial, 1);
            },
            rules) {}
  SearchEngine::Kind next() {
    task.claim.reset();
    return engine.next(task);
  }
  SearchTrial const& trial() const { return journal.history().trials.at(0); }
};

TEST_CASE("a trial that kills one process after the other is left, and the search goes on") {
  Killed search({.seed = 1, .most_kills = 3});
  for (int begin = 0; begin < 3; ++begin) {
    REQUIRE(search.next() == SearchEngine::Kind::task);
    CHECK(search.task.trial == 0);
  }
  // It comes to a checkpoint, so these kills were not its fault.
  std::filesystem::create_directories(search.engine.folder_of(0) / "checkpoints/step-00000001");
  for (int begin = 0; begin < 3; ++begin) {
    REQUIRE(search.next() == SearchEngine::Kind::task);
    CHECK(search.task.trial == 0);
    CHECK(search.trial().kills == static_cast<std::size_t>(begin));
  }
  REQUIRE(search.next() == SearchEngine::Kind::task);
  CHECK(search.task.trial == 1);
  CHECK(search.trial().state == TrialState::failed);
  CHECK(search.trial().outcome.find("its process ended 3 times without a result") == 0);
}

TEST_CASE("the time of a killed process is that up to its last file, and it is paid for") {
  Killed search({.seed = 1, .dollars = 0.09, .dollars_per_hour = 3600});
  REQUIRE(search.next() == SearchEngine::Kind::task);
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  write_whole_file(search.engine.folder_of(0) / "log", "a line", Durable::no);
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  // The lock of whoever looks is no sign of life.
  write_whole_file(search.engine.folder_of(0) / "claim.other", "me", Durable::no);
  REQUIRE(search.next() == SearchEngine::Kind::task);
  CHECK(search.trial().kills == 1);
  CHECK(search.trial().spent_seconds >= 0.09);
  CHECK(search.trial().spent_seconds < 0.4);
  CHECK(search.task.seconds_before == search.trial().spent_seconds);
  CHECK(search.engine.is_spent());
}

TEST_CASE("a clock that goes back adds no time and takes none away") {
  Killed search({.seed = 1});
  REQUIRE(search.next() == SearchEngine::Kind::task);
  search.task.claim.reset();
  {
    SearchJournal::Session session(search.journal);
    session.records().begun(0, 4e9, 0);  // in the year 2096
    session.commit();
  }
  REQUIRE(search.next() == SearchEngine::Kind::task);
  CHECK(search.trial().spent_seconds == 0);
}

TEST_CASE("the time of a claim is that of the file system, as of a worker on any machine") {
  Killed search({.seed = 1, .seconds = 1000});
  REQUIRE(search.next() == SearchEngine::Kind::task);
  CHECK(search.trial().begun == written_at(search.engine.folder_of(0) / "claim"));
  CHECK(!search.engine.is_spent());
  // The machine that has claimed it, and its file server, are half an hour ahead of the clock of this process: the
  // file server says how long ago the claim was, whatever the clock here says.
  CHECK(written_at(lock_of(search.journal.path())) >= search.trial().begun);
  CHECK(written_at(search.folder / "nothing") == 0);
}

TEST_CASE("repeats are as many as a planned budget has kept back") {
  TemporaryFolder folder;
  FakeSearch search{.folder = folder.path(), .bind = [](SearchLimits const& limits) {
                      return RandomSearch{.trials = 6}.bind(limits);
                    }};
  search.rules.repeats = 3;
  SearchHistory const found = search.run();
  CHECK(found.trials.size() == 6 + 3);
  CHECK(search.run().trials.size() == 6 + 3);
}

TEST_CASE("the price of a meter is that of the time before its first bill") {
  Killed search({.seed = 1, .dollars = 0.05});
  REQUIRE(search.next() == SearchEngine::Kind::task);
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  CHECK(!search.engine.is_spent());
  search.engine.take_rate(3600);
  CHECK(search.engine.is_spent());
}

TEST_CASE("the money of all trials is a budget, at a price or as a meter bills it") {
  TemporaryFolder priced, billed;
  FakeSearch search{.folder = priced.path(), .bind = halving()};
  search.rules.dollars = 4.2;
  search.rules.dollars_per_hour = 3600;  // half a dollar a rung
  SearchHistory history;
  CHECK(search.work(history) == SearchEngine::Kind::budget);
  CHECK(history.trials.size() == 9);
  search.rules.dollars_per_hour.reset();
  search.folder = billed.path();
  search.dollars = 2;
  CHECK(search.work(history) == SearchEngine::Kind::budget);
  CHECK(history.trials.size() == 3);
}

TEST_CASE("the checkpoints of pruned trials are removed, and no others") {
  TemporaryFolder folder;
  SearchHistory const found = FakeSearch{.folder = folder.path(), .bind = halving()}.run();
  std::size_t pruned = 0;
  for (std::size_t i = 0; i < found.trials.size(); ++i) {
    std::string const digits = std::to_string(i);
    auto const at = folder / ("trials/" + std::string(4 - digits.size(), '0') + digits);
    bool const complete = found.trials[i].state == TrialState::complete;
    CHECK(std::filesystem::exists(at / "checkpoints") == complete);
    CHECK(std::filesystem::exists(at / "step"));
    pruned += complete ? 0U : 1U;
  }
  CHECK(pruned == 16);
  // A process that is killed between the two leaves them, and the next one that comes to the end looks.
  auto const is_pruned = [](SearchTrial const& of) { return of.state == TrialState::pruned; };
  auto const which = std::ranges::find_if(found.trials, is_pruned) - found.trials.begin();
  std::string const number = std::to_string(which);
  auto const left =
      folder / ("trials/" + std::string(4 - number.size(), '0') + number + "/checkpoints");
  std::filesystem::create_directories(left / "step-00000003");
  FakeSearch{.folder = folder.path(), .bind = halving()}.run();
  CHECK(!std::filesystem::exists(left));
}

TEST_CASE("a budget in steps ends an asynchronous search, and what it has paused") {
  TemporaryFolder folder;
  FakeSearch search{.folder = folder.path(), .bind = asha()};
  search.rules.budget = 60;
  SearchHistory const found = search.run();
  std::uint64_t steps = 0;
  for (SearchTrial const& each : found.trials) {
    CHECK(each.is_over());
    if (!each.repeats) steps += each.rungs.back().steps;
  }
  CHECK(steps <= 60);
  CHECK(steps > 45);
}

}  // namespace frugal_test::search_engine
