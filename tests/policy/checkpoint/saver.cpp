// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <frugal/frugal.hpp>

#include "support/checkpoints.hpp"
#include "support/curve.hpp"
#include "support/dying_runs.hpp"
#include "support/files.hpp"
#include "support/non_finite.hpp"
#include "support/running.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

namespace frugal_test::policy_checkpoint_saver {

using namespace support;
using namespace support::dying_runs;
using frugal::Async;
using frugal::Every;
using frugal::Keep;
using frugal::OnFailure;
using Optimizer = frugal::Optimize<frugal::AdamW>;

/// Removes the folder of checkpoints in the middle of a run, and restores it. Requests a save one
/// step after the removal.
struct Saboteur {
  using kind = support::kinds::restore;
  using listens = frugal::list<frugal::on::step>;

  std::filesystem::path folder;
  std::uint64_t away_at = 0;  ///< step
  std::uint64_t back_at = 0;  ///< step
  bool* saved = nullptr;      ///< result of the save
  int wait = 0;               ///< milliseconds before the folder is back, for a thread that writes

  struct State {
    using transient = void;
    std::filesystem::path folder;
    std::uint64_t away_at, back_at;
    bool* saved;
    int wait;
    explicit State(Saboteur const& settings)
        : folder(settings.folder),
          away_at(settings.away_at),
          back_at(settings.back_at),
          saved(settings.saved),
          wait(settings.wait) {}
    void on_step(frugal::Step& phase) {
      auto const place = folder / "checkpoints";
      auto const aside = folder / "aside";
      if (phase.counters().step == away_at) {
        static_cast<void>(phase.save());  // so that no write is in progress when the folder goes
        std::filesystem::rename(place, aside);
        write_text(place, "no folder");
      }
      if (saved && phase.counters().step == away_at + 1) *saved = phase.save();
      if (phase.counters().step == back_at) {
        std::this_thread::sleep_for(std::chrono::milliseconds(wait));
        std::filesystem::remove(place);
        std::filesystem::rename(aside, place);
      }
    }
  };
};

template <class Policy>
void reports_a_failure(Policy policy) {
  TemporaryFolder const folder;
  Job const job{.folder = folder.path()};
  CHECK_THROWS_WITH_AS(run(job, Optimizer{}, policy, frugal::Log<Every<100>>{},
                           Saboteur{.folder = folder.path(), .away_at = 6}),
                       doctest::Contains("mkdir"), frugal::StoreError);
  std::filesystem::remove(folder / "checkpoints");
  std::filesystem::rename(folder / "aside", folder / "checkpoints");
  CHECK((steps_in(folder.path()) == Steps{0, 4, 6}));
}

TEST_CASE("a checkpoint that cannot be written ends the run, and the last good one stays") {
  reports_a_failure(frugal::Checkpoint<Every<4>>{});
  reports_a_failure(frugal::Checkpoint<Every<4>, Async>{});
}

template <class Policy>
void goes_on(Policy policy) {
  policy.on_failure = OnFailure::Continue;
  TemporaryFolder const folder;
  Job const job{.folder = folder.path()};
  Outcome const outcome = run(job, Optimizer{}, policy, frugal::Log<Every<100>>{},
                              Saboteur{.folder = folder.path(), .away_at = 6, .back_at = 15});
  CHECK(outcome.report.steps == 33);
  CHECK(steps_in(folder.path()).back() == 33);
  CHECK(advises(outcome.report, "a checkpoint was not written"));
  CHECK(text_of(folder / "metrics.jsonl").find("checkpoint_failed") != std::string::npos);
}

TEST_CASE("or it is reported and retried at the next time, as the user chooses") {
  goes_on(frugal::Checkpoint<Every<4>>{});
  goes_on(frugal::Checkpoint<Every<4>, Async>{});
}

TEST_CASE("failures are one warning, with the last of them and their number") {
  TemporaryFolder const folder;
  // Nothing at 8 and 12, and as much in the second run, whose count continues.
  auto const start = [&](std::uint64_t epochs, std::uint64_t away) {
    return run({.folder = folder.path(), .epochs = epochs}, Optimizer{},
               frugal::Checkpoint<Every<4>>{.on_failure = OnFailure::Continue},
               Saboteur{.folder = folder.path(), .away_at = away, .back_at = away + 8})
        .report;
  };
  auto const lines = [](frugal::Report const& report) {
    std::vector<std::string> found;
    for (std::string const& line : report.warnings) {
      if (line.find("a checkpoint was not written: ") == 0) found.push_back(line);
    }
    return found;
  };
  auto const first = lines(start(2, 6));
  REQUIRE(first.size() == 1);
  CHECK(first[0].find("step-00000012") != std::string::npos);
  CHECK(first[0].ends_with(" (2 times)"));
  auto const second = lines(start(4, 25));
  REQUIRE(second.size() == 1);
  CHECK(second[0].find("step-00000032") != std::string::npos);
  CHECK(second[0].ends_with(" (4 times)"));
}

template <class... Options>
void saves_what_beats_the_files() {
  TemporaryFolder const folder;
  // The save of 1, after step 2, and that of 3 fail.
  follow(folder.path(), {5, 1, 3, 2.9, 2.8, 6, 6},
         frugal::Checkpoint<Every<1000>, frugal::KeepBest<>, Keep<1>, Options...>{
             .on_failure = OnFailure::Continue},
         1, Saboteur{.folder = folder.path(), .away_at = 2, .back_at = 4, .wait = 300});
  CHECK((steps_in(folder.path()) == Steps{5, 7}));
}

TEST_CASE("a best value whose save failed does not keep later ones from being saved") {
  saves_what_beats_the_files<>();
  saves_what_beats_the_files<Async>();
}

TEST_CASE("KeepBest of a fork saves what beats the checkpoints of the fork") {
  TemporaryFolder const folder;
  follow(folder / "trunk", {5, 1, 3},
         frugal::Checkpoint<Every<1, frugal::Epoch>, frugal::KeepBest<>, Keep<9>>{});
  follow(folder / "fork", {0, 0, 0, 2.5, 4, 4},
         frugal::Checkpoint<Every<1000>, frugal::KeepBest<>, Keep<1>>{
             .from = folder / "trunk/checkpoints/step-00000003"});
  CHECK((steps_in(folder / "fork") == Steps{4, 6}));
  CHECK(frugal::best_checkpoint(folder / "fork").filename() == "step-00000004");
}

TEST_CASE("KeepBest after a return saves what beats the checkpoints that are left") {
  TemporaryFolder const folder;
  follow(folder.path(), {5, 3, 4, 1},
         frugal::Checkpoint<Every<1, frugal::Epoch>, frugal::KeepBest<>, Keep<2>>{});
  REQUIRE((steps_in(folder.path()) == Steps{3, 4}));
  follow(folder.path(), {0, 0, 0, 3.5, 6, 6},
         frugal::Checkpoint<Every<1000>, frugal::KeepBest<>, Keep<1>>{
             .from = folder / "checkpoints/step-00000003", .on_newer = frugal::OnNewer::Remove});
  CHECK((steps_in(folder.path()) == Steps{4, 6}));
}

template <class Policy>
void reports_its_end(Policy policy) {
  policy.on_failure = OnFailure::Continue;
  TemporaryFolder const folder;
  auto const report = run({.folder = folder.path()}, Optimizer{}, policy,
                          Saboteur{.folder = folder.path(), .away_at = 6})
                          .report;
  CHECK(report.steps == 33);
  CHECK(report.unsaved.find("step-00000033") != std::string::npos);
  CHECK(report.exit_code() == 74);
}

TEST_CASE("a run whose end could not be saved reports that, also in its exit code") {
  reports_its_end(frugal::Checkpoint<Every<4>>{});
  reports_its_end(frugal::Checkpoint<Every<4>, Async>{});
}

TEST_CASE("a run with failed saves, but not the last one, is saved") {
  TemporaryFolder const folder;
  auto const report = run({.folder = folder.path()}, Optimizer{},
                          frugal::Checkpoint<Every<4>, Async>{.on_failure = OnFailure::Continue},
                          Saboteur{.folder = folder.path(), .away_at = 6, .back_at = 15})
                          .report;
  CHECK(report.unsaved.empty());
  CHECK(report.exit_code() == 0);
}

TEST_CASE("a requested save that a thread cannot write returns false") {
  TemporaryFolder const folder;
  bool saved = true;
  run({.folder = folder.path()}, Optimizer{},
      frugal::Checkpoint<Every<4>, Async>{.on_failure = OnFailure::Continue},
      frugal::Log<Every<100>>{},
      Saboteur{.folder = folder.path(), .away_at = 6, .back_at = 15, .saved = &saved});
  CHECK_FALSE(saved);
}

/// Ten windows an epoch, of which the sixth makes a row NaN that no loss reads again.
template <class... Ps>
frugal::Report with_a_rare_row(std::filesystem::path const& folder, Ps const&... policies) {
  frugal::Trainer trainer{std::make_shared<Rows>(), RareRow{},
                          frugal::Settings{.run_dir = folder, .epochs = 2},
                          frugal::Optimize<frugal::SGD>{.lr = 0.1}, policies...};
  frugal::TensorDataset train(rows_of(5), {.batch = 4, .shuffle = false});
  return trainer.fit(train);
}

template <class Policy>
void seals_nothing_bad(Policy policy) {
  TemporaryFolder const folder;
  policy.on_failure = OnFailure::Continue;  // which is for disks
  CHECK_THROWS_WITH_AS(with_a_rare_row(folder.path(), policy),
                       doctest::Contains("tensor 'table.weight'"), frugal::NonFiniteWeightsError);
  CHECK((steps_in(folder.path()) == Steps{4, 5}));
}

TEST_CASE(
    "weights that are not finite are not saved, and end the run: the saves before them stay") {
  using Two = frugal::Checkpoint<Every<1>, Keep<2>>;
  seals_nothing_bad(Two{});
  seals_nothing_bad(frugal::Checkpoint<Every<1>, Keep<2>, Async>{});
}

template <class Policy>
void returns_with_rollback() {
  TemporaryFolder const folder;
  frugal::Report const report =
      with_a_rare_row(folder.path(), frugal::Rollback<Every<1000>>{}, Policy{});
  CHECK(report.steps == 18);
  CHECK(advises(report, "the weights are not finite"));
  CHECK(steps_in(folder.path()).back() == 18);
}

TEST_CASE("with Rollback such a save returns the run, and finds the window") {
  returns_with_rollback<frugal::Checkpoint<Every<2>>>();
  returns_with_rollback<frugal::Checkpoint<Every<2>, Async>>();
}

/// Linear, with a mask of -infinity and a frozen NaN.
struct Masked : torch::nn::Module {
  Masked() : linear(register_module("linear", torch::nn::Linear(6, 3))) {
    mask = register_buffer("mask", at::full({2, 2}, -std::numeric_limits<float>::infinity()));
    frozen = register_parameter("frozen", at::full({2}, std::nanf("")), false);
  }
  at::Tensor forward(at::Tensor const& x) { return linear->forward(x); }
  torch::nn::Linear linear;
  at::Tensor mask, frozen;
};

TEST_CASE("a constant that is not finite from the start, such as a mask, is saved and resumed") {
  TemporaryFolder const folder;
  auto const fit = [&](std::uint64_t epochs, auto const& policy) {
    frugal::Trainer trainer{std::make_shared<Masked>(),
                            frugal::CrossEntropy{},
                            frugal::Settings{.run_dir = folder.path(), .epochs = epochs},
                            Optimizer{},
                            frugal::Rollback<Every<3>>{},
                            policy};
    frugal::TensorDataset train(samples(40), {.batch = 4});
    return trainer.fit(train);
  };
  CHECK(fit(1, frugal::Checkpoint<Every<4>>{}).steps == 10);
  frugal::Report const report = fit(2, frugal::Checkpoint<Every<4>>{});
  REQUIRE(report.resumed);
  CHECK(report.resumed->step == 10);
  // -infinity is no weight that FP16 cannot hold.
  CHECK(fit(3, frugal::Checkpoint<Every<4>, frugal::WeightsIn<frugal::FP16>>{}).steps == 30);
}

/// Changes the run directory in the middle of the run.
struct Meddler {
  using kind = support::kinds::restore;
  using listens = frugal::list<frugal::on::step>;

  std::function<void()> deed;
  std::uint64_t at = 0;  ///< step

  struct State {
    using transient = void;
    std::function<void()> deed;
    std::uint64_t at;
    explicit State(Meddler const& settings) : deed(settings.deed), at(settings.at) {}
    void on_step(frugal::Step& phase) {
      if (phase.counters().step != at) return;
      static_cast<void>(phase.save());  // so that no write is in progress
      deed();
    }
  };
};

template <class Policy>
void leaves_another_run_alone(Policy policy) {
  policy.on_failure = OnFailure::Continue;  // which does not continue with another run directory
  TemporaryFolder const folder;
  auto const here = folder / "a";
  std::unique_ptr<frugal::RunDirectory> other;
  Steps const theirs{4, 8, 12};
  Meddler const meddler{.deed =
                            [&] {
                              std::filesystem::rename(here, folder / "was");
                              other = std::make_unique<frugal::RunDirectory>(here);
                              for (std::uint64_t const step : theirs) save(*other, step);
                            },
                        .at = 10};
  CHECK_THROWS_WITH_AS(
      run({.folder = here}, Optimizer{}, policy, frugal::Log<Every<100>>{}, meddler),
      doctest::Contains("this run has lost its run directory"), frugal::LockError);
  CHECK((steps_in(here) == theirs));
  CHECK(entries(here / "checkpoints") == theirs.size());
  CHECK_FALSE(std::filesystem::exists(here / "metrics.jsonl"));
}

TEST_CASE("a run whose folder was renamed does not touch the run that has the name now") {
  leaves_another_run_alone(frugal::Checkpoint<Every<4>, Keep<1>>{});
  leaves_another_run_alone(frugal::Checkpoint<Every<4>, Keep<1>, Async>{});
}

template <class Policy>
void advises_of_what_stays(Policy policy) {
  TemporaryFolder const folder;
  // Deletion needs a longer name, and this one is as long as a name can be.
  Meddler const meddler{.deed =
                            [&] {
                              std::filesystem::rename(
                                  newest_in(folder.path()),
                                  folder / "checkpoints" / std::string(255, 'x'));
                            },
                        .at = 10};
  frugal::Report const report = run({.folder = folder.path()}, Optimizer{}, policy, meddler).report;
  CHECK(report.steps == 33);
  CHECK(advises(report, "an old checkpoint cannot be deleted"));
  CHECK_FALSE(advises(report, "a checkpoint was not written"));
  CHECK(steps_in(folder.path()).size() == 2);
}

TEST_CASE("a checkpoint that cannot be deleted is reported, and the run continues") {
  advises_of_what_stays(frugal::Checkpoint<Every<4>, Keep<1>>{});
  advises_of_what_stays(frugal::Checkpoint<Every<4>, Keep<1>, Async>{});
}

/// Records the newest checkpoint on disk whenever a save takes the run's state.
struct Looking {
  using kind = support::kinds::restore;
  using listens = frugal::list<frugal::on::step>;

  std::filesystem::path folder;
  std::vector<std::string>* newest = nullptr;

  struct State {
    std::filesystem::path folder;
    std::vector<std::string>* newest;
    at::Tensor large = at::zeros({1 << 20});  // takes longer to write than a step
    explicit State(Looking const& settings) : folder(settings.folder), newest(settings.newest) {}
    void on_step(frugal::Step&) {}
    template <class Archive>
    void persist(Archive& archive) {
      std::string name;
      for (auto const& each : std::filesystem::directory_iterator(folder / "checkpoints")) {
        name = std::max(name, each.path().filename().string());
      }
      newest->push_back(name);
      archive("large", large);
    }
  };
};

TEST_CASE("a thread has written the last snapshot before the next one reuses its memory") {
  TemporaryFolder const folder;
  std::vector<std::string> newest;
  run({.folder = folder.path()}, Optimizer{}, frugal::Checkpoint<Every<1>, Async, Keep<1>>{},
      Looking{.folder = folder.path(), .newest = &newest});
  REQUIRE(newest.size() > 33);  // before the first step and after each
  CHECK(newest[0].empty());
  for (std::size_t i = 0; i < 33; ++i) CHECK(newest[i + 1] == frugal::detail::step_name(i));
}

TEST_CASE("a second trainer in the same folder is refused, naming the first") {
  TemporaryFolder const folder;
  frugal::RunDirectory const first(folder.path());
  CHECK_THROWS_WITH_AS(run({.folder = folder.path()}, Optimizer{}, frugal::Checkpoint<Every<4>>{}),
                       doctest::Contains("process "), frugal::LockError);
}

TEST_CASE("invalid settings are refused") {
  TemporaryFolder const folder;
  using Auto = frugal::Checkpoint<Every<frugal::Auto>>;
  CHECK_THROWS_WITH_AS(run({.folder = {}}, Optimizer{}, Auto{}),
                       doctest::Contains("Checkpoint has nowhere to write"), frugal::SettingsError);
  CHECK_THROWS_AS(run({.folder = folder.path()}, Optimizer{}, Auto{.share = 0}),
                  frugal::SettingsError);
  CHECK_THROWS_AS(run({.folder = folder.path()}, Optimizer{}, Auto{.machine_lifetime = -1}),
                  frugal::SettingsError);
}

TEST_CASE("the log of a resumed run has the lines of an uninterrupted one, and the resume's cost") {
  TemporaryFolder const folder;
  auto const start = [&](std::string const& name, std::vector<std::uint64_t> const& deaths) {
    run_to_the_end({.folder = folder / name}, deaths, Optimizer{}, frugal::Log<Every<2>>{},
                   frugal::Checkpoint<Every<4>>{});
    std::vector<nlohmann::json> lines;
    for (auto const& text : lines_of(text_of(folder / name / "metrics.jsonl"))) {
      lines.push_back(nlohmann::json::parse(text));
      lines.back().erase("seconds");
      lines.back().erase("memory_bytes");
    }
    return lines;
  };
  auto const whole = start("whole", {});
  auto killed = start("killed", {7, 11});
  std::vector<nlohmann::json> resumes;
  std::erase_if(killed, [&](nlohmann::json const& line) {
    if (line.at("event") != "resume") return false;
    resumes.push_back(line);
    return true;
  });
  CHECK(killed == whole);
  REQUIRE(resumes.size() == 2);
  CHECK(resumes[0].at("step") == 4);
  // At first the heartbeat follows the steps: 6 were done, and 4 were saved.
  CHECK(resumes[0].at("steps_repeated") <= 2);
  CHECK(resumes[0].at("seconds_lost") >= 0.0);
}

TEST_CASE("a run that was copied without its log continues with a new one, and reports that") {
  TemporaryFolder const folder;
  Job job{.folder = folder.path(), .dies_at = 15};
  CHECK(run(job, Optimizer{}, frugal::Log<Every<2>>{}, frugal::Checkpoint<Every<4>>{}).died);
  std::filesystem::remove(folder / "metrics.jsonl");
  job.dies_at = 0;
  frugal::Report const report =
      run(job, Optimizer{}, frugal::Log<Every<2>>{}, frugal::Checkpoint<Every<4>>{}).report;
  CHECK(advises(report, "its lines from then are missing"));
  auto const lines = lines_of(text_of(folder / "metrics.jsonl"));
  REQUIRE_FALSE(lines.empty());
  CHECK(nlohmann::json::parse(lines.front()).at("event") == "begin");
  // If all of it is there, nothing else is said.
  Job const again{.folder = folder.path(), .epochs = 4};
  CHECK(run(again, Optimizer{}, frugal::Log<Every<2>>{}, frugal::Checkpoint<Every<4>>{})
            .report.warnings == report.warnings);
}

TEST_CASE("a checkpoint before a resumed run's first line does not count lines to be cut") {
  TemporaryFolder const folder;
  auto const start = [&](std::string const& name, std::vector<std::uint64_t> const& deaths) {
    run_to_the_end({.folder = folder / name}, deaths, Optimizer{}, frugal::Log<Every<8>>{},
                   frugal::Validate<Every<100>>{}, frugal::Checkpoint<Every<3>>{});
    std::vector<nlohmann::json> lines;
    for (auto const& text : lines_of(text_of(folder / name / "metrics.jsonl"))) {
      auto line = nlohmann::json::parse(text, nullptr, false);
      REQUIRE(line.is_object());
      line.erase("seconds");
      line.erase("memory_bytes");
      if (line.at("event") != "resume") lines.push_back(line);
    }
    return lines;
  };
  // The second start continues from step 12, saves step 15 and then logs step 16; the third
  // continues from 15.
  CHECK(start("killed", {14, 5}) == start("whole", {}));
}

TEST_CASE("memory of a snapshot is allocated once") {
  frugal::StateDict memory;
  at::Tensor const value = at::arange(6, at::kFloat).view({2, 3});
  void const* first = nullptr;
  for (int i = 0; i < 3; ++i) {
    frugal::StateWriter writer(memory, frugal::CopyTarget::on_host);
    writer("value", value + i);
    CHECK(memory.tensors.at("value").equal(value + i));
    if (!first) first = memory.tensors.at("value").const_data_ptr();
    CHECK(memory.tensors.at("value").const_data_ptr() == first);
  }
}

}  // namespace frugal_test::policy_checkpoint_saver
