// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <frugal/policy/checkpoint.hpp>
#include <frugal/report/prometheus.hpp>

#include "support/files.hpp"
#include "support/full_disk.hpp"
#include "support/scripted.hpp"

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace frugal_test::policy_prometheus {

using namespace frugal_test::support;
using frugal::Every;
using frugal::Prometheus;

/// Two epochs of 5 steps, validated after each.
template <class... Ps>
auto trainer_of(frugal::Settings settings, Ps const&... policies) {
  settings.epochs = 2;
  settings.seed = 5;
  return frugal::Trainer{std::make_shared<Mlp>(), frugal::CrossEntropy{}, settings,
                         frugal::Optimize<frugal::SGD>{}, policies...};
}
auto train() { return frugal::TensorDataset(samples(18), {.batch = 4}); }
auto valid() { return frugal::TensorDataset(samples(9, 92), {.batch = 4}); }

template <class Trainer>
frugal::SinkOutcome outcome_of(Trainer& trainer) {
  auto const* const outcome = trainer.template policy<frugal::kinds::prometheus>().outcome.get();
  REQUIRE(outcome != nullptr);
  return *outcome;
}

/// Fits without and with the policy, and expects the same weights and one advice.
template <class Policy>
frugal::SinkOutcome failing(Policy const& policy, frugal::Settings const& settings = {}) {
  auto plain = trainer_of({});
  static_cast<void>(plain.fit(train(), valid()));
  auto watched = trainer_of(settings, policy);
  auto const report = watched.fit(train(), valid());
  CHECK(same_bits(tensors_of(*plain.module()), tensors_of(*watched.module())));
  CHECK(report.steps == 10);
  REQUIRE(report.warnings.size() == 1);
  CHECK(report.warnings[0].starts_with("Prometheus could not write at step "));
  return outcome_of(watched);
}

TEST_CASE("the file is in the run directory, and has the values of the end") {
  TemporaryFolder const folder;
  auto trainer =
      trainer_of({.run_dir = folder / "run"}, Prometheus<Every<2>>{.labels = {{"model", "a\"b"}}});
  auto const report = trainer.fit(train(), valid());
  std::string const text = text_of(folder / "run" / "metrics.prom");
  std::string const labels = "{model=\"a\\\"b\",run=\"" + (folder / "run").string() + "\"} ";
  CHECK(text.find("# TYPE frugal_steps_total counter\nfrugal_steps_total" + labels + "10\n") !=
        std::string::npos);
  CHECK(text.find("frugal_running" + labels + "0\n") != std::string::npos);
  CHECK(text.find("frugal_samples_total" + labels + "36\n") != std::string::npos);
  CHECK(text.find("# TYPE frugal_loss gauge\n") != std::string::npos);
  CHECK(text.find("frugal_validation_loss" + labels) != std::string::npos);
  CHECK(text.find("frugal_memory_bytes" + labels) != std::string::npos);
  CHECK(entries(folder / "run") == 2);  // with the lock
  CHECK(report.warnings.empty());
  CHECK(outcome_of(trainer).lost == 0);
  CHECK(outcome_of(trainer).written == 11);  // begin, 5 steps, 2 epochs, 2 validations, end
}

TEST_CASE("a finished run that is started again is not running when it has ended again") {
  TemporaryFolder const folder;
  for (int start = 0; start < 2; ++start) {
    auto trainer = trainer_of({.run_dir = folder.path()}, Prometheus<>{},
                              frugal::Checkpoint<Every<1, frugal::Epoch>>{});
    static_cast<void>(trainer.fit(train(), valid()));
    std::string const text = text_of(folder / "metrics.prom");
    CHECK(text.find("frugal_running{run=\"" + folder.path().string() + "\"} 0\n") !=
          std::string::npos);
  }
}

/// The series of a file, but for those that belong to the process and not to the run.
std::vector<std::string> of_the_run(std::filesystem::path const& file) {
  std::vector<std::string> lines;
  for (std::string const& line : lines_of(text_of(file))) {
    bool other = line.starts_with("#");
    for (char const* const part : {"_total", "last_update", "run_training_seconds"}) {
      other = other || line.find(part) != std::string::npos;
    }
    if (!other) lines.push_back(line);
  }
  return lines;
}

TEST_CASE("a finished run that is started again keeps its last values, and its counters are 0") {
  TemporaryFolder const folder;
  auto const start = [&] {
    auto trainer =
        trainer_of({.run_dir = folder.path()}, Prometheus<Every<2>>{.labels = {{"run", "x"}}},
                   frugal::Checkpoint<Every<1, frugal::Epoch>>{});
    static_cast<void>(trainer.fit(train(), valid()));
    return of_the_run(folder / "metrics.prom");
  };
  auto const first = start();
  CHECK(first.size() > 10);
  CHECK(start() == first);
  std::string const text = text_of(folder / "metrics.prom");
  CHECK(text.find("frugal_steps_total{run=\"x\"} 0\n") != std::string::npos);
  CHECK(text.find("frugal_run_steps{run=\"x\"} 10\n") != std::string::npos);
  CHECK(text.find("frugal_loss{run=\"x\"} ") != std::string::npos);
}

TEST_CASE("a label of the scrape's own is told before the first step") {
  TemporaryFolder const folder;
  auto trainer = trainer_of({}, Prometheus<>{.file = folder / "a.prom", .labels = {{"job", "x"}}});
  auto const report = trainer.fit(train(), valid());
  REQUIRE(report.warnings.size() == 1);
  CHECK(report.warnings[0].starts_with("Prometheus has the label job, "));
}

TEST_CASE("a file of one's own is replaced, and its folder is made") {
  TemporaryFolder const folder;
  auto trainer = trainer_of({}, Prometheus<Every<1>>{.file = folder / "deep" / "a.prom"});
  static_cast<void>(trainer.fit(train(), valid()));
  CHECK(text_of(folder / "deep" / "a.prom").find("frugal_steps_total 10\n") != std::string::npos);
}

/// Takes the folder away at a step, and puts a file in its place: it cannot be made again.
struct Vanishing {
  struct kind : frugal::optional_kind {
    static constexpr std::string_view name = "test.Vanishing";
  };
  using listens = frugal::list<frugal::on::step>;
  using before = frugal::list<frugal::kinds::prometheus>;
  std::filesystem::path folder;
  struct State {
    using transient = void;
    explicit State(Vanishing const& settings) : folder_(settings.folder) {}
    void on_step(frugal::Step& phase) {
      if (phase.counters().step == 3) {
        std::filesystem::remove_all(folder_);
        std::ofstream(folder_) << "in the way";
      }
      if (phase.counters().step == 5) std::filesystem::remove(folder_);
    }
    std::filesystem::path folder_;
  };
};

TEST_CASE("a folder that vanishes loses records, is reported once, and changes no weight") {
  TemporaryFolder const folder;
  auto plain = trainer_of({});
  static_cast<void>(plain.fit(train(), valid()));
  auto trainer = trainer_of({}, Prometheus<Every<1>>{.file = folder / "gone" / "a.prom"},
                            Vanishing{.folder = folder / "gone"});
  auto const report = trainer.fit(train(), valid());
  CHECK(same_bits(tensors_of(*plain.module()), tensors_of(*trainer.module())));
  REQUIRE(report.warnings.size() == 1);
  CHECK(report.warnings[0].find("at step 3 (") != std::string::npos);
  CHECK(outcome_of(trainer).lost == 2);      // steps 3 and 4
  CHECK(outcome_of(trainer).written == 14);  // it works again from step 5 on
  CHECK(text_of(folder / "gone" / "a.prom").find("frugal_steps_total 10\n") != std::string::npos);
}

TEST_CASE("a full disk keeps the last whole file, is reported once, and changes no weight") {
  TemporaryFolder const folder;
  std::ofstream(folder / "a.prom") << "whole\n";
  frugal::SinkOutcome outcome;
  frugal::Report report;
  auto plain = trainer_of({});
  static_cast<void>(plain.fit(train(), valid()));
  auto watched = trainer_of({}, Prometheus<Every<1>>{.file = folder / "a.prom"});
  {
    FullDisk const full;
    report = watched.fit(train(), valid());
  }
  CHECK(same_bits(tensors_of(*plain.module()), tensors_of(*watched.module())));
  CHECK(report.warnings.size() == 1);
  CHECK(outcome_of(watched).lost == 16);
  CHECK(outcome_of(watched).written == 0);
  CHECK(text_of(folder / "a.prom") == "whole\n");
  CHECK(entries(folder.path()) == 1);
}

TEST_CASE("a folder that was never there and cannot be made is the same") {
  TemporaryFolder const folder;
  std::ofstream(folder / "file") << "x";
  CHECK(failing(Prometheus<Every<1>>{.file = folder / "file" / "a.prom"}).lost == 16);
}

TEST_CASE("a run without a folder, a device, and an invalid label are refused") {
  auto const refused = [](Prometheus<> const& policy) {
    auto trainer = trainer_of({}, policy);
    CHECK_THROWS_AS(static_cast<void>(trainer.fit(train())), frugal::SettingsError);
  };
  refused({});
  refused({.file = "/dev/null"});
  refused({.file = std::filesystem::temp_directory_path()});
  for (char const* label : {"", "a-b", "1a", "__a", "event", "le", "quantile", "\xc3\xa4"}) {
    refused({.file = "/tmp/frugal-test-never.prom", .labels = {{label, "x"}}});
  }
}

}  // namespace frugal_test::policy_prometheus
