// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <fstream>
#include <numeric>
#include <optional>

#include <frugal/policy/accumulate.hpp>
#include <frugal/policy/clip.hpp>
#include <frugal/policy/schedule.hpp>
#include <frugal/report/log.hpp>

#include "support/dying_runs.hpp"
#include "support/files.hpp"
#include "support/full_disk.hpp"
#include "support/scripted.hpp"

namespace frugal_test::policy_log {

using namespace frugal_test::support;
using dying_runs::Steps;
using frugal::Epoch;
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

std::vector<std::string> names(std::vector<Json> const& events) {
  std::vector<std::string> all;
  for (Json const& event : events) all.push_back(event.at("event"));
  return all;
}

/// Two epochs of 5 steps, validated after each.
template <class... Ps>
frugal::Report fit(frugal::Settings settings, Ps const&... policies) {
  settings.epochs = 2;
  settings.seed = 5;
  frugal::Trainer trainer{std::make_shared<Mlp>(), frugal::CrossEntropy{}, settings,
                          Optimize<SGD>{}, policies...};
  return trainer.fit(TensorDataset(samples(18), {.batch = 4}),
                     TensorDataset(samples(9, 92), {.batch = 4}));
}

TEST_CASE(
    "a log has a line for the beginning, each due step, each validation, epoch, and the end") {
  TemporaryFolder const folder;
  Seen seen;
  auto const report =
      fit({.run_dir = folder.path()}, Log<Every<2>>{},
          frugal::Schedule<frugal::Warmup<5>, frugal::Constant<>>{}, Spy{.seen = &seen});
  auto const events = events_in(folder / "metrics.jsonl");
  CHECK(names(events) == std::vector<std::string>{"begin", "step", "step", "epoch", "validation",
                                                  "step", "step", "step", "epoch", "validation",
                                                  "end"});
  CHECK(events[0].at("parameters") == 83);
  CHECK(events[0].at("seed") == 5);
  CHECK(events[0].at("step") == 0);

  Json const& step = events[2];
  CHECK(step.at("step") == 4);
  CHECK(step.at("epoch") == 0);
  CHECK(step.at("samples") == 16);
  CHECK(step.at("loss").get<double>() == seen.losses[3]);
  CHECK(step.at("lr_factor") == 4.0 / 5);               // of the completed step, not of the next
  CHECK(step.at("learning_rate") == 1e-3 * (4.0 / 5));  // of SGD's default
  CHECK(step.at("seconds").get<double>() >= events[1].at("seconds").get<double>());

  CHECK(events[3].at("epoch") == 1);
  CHECK(events[3].at("loss").get<double>() == seen.epoch_losses[0]);
  CHECK(events[4].at("loss").get<double>() == report.validations[0].metrics["loss"]);
  CHECK(events[10].at("stopped_by") == "");
  CHECK(events[10].at("samples") == 36);
}

TEST_CASE("a step's line has the gradients' norm if a policy computes it") {
  TemporaryFolder const folder;
  Seen seen;
  fit({.run_dir = folder.path()}, Log<Every<2>>{}, frugal::ClipNorm<1000.0>{}, Spy{.seen = &seen});
  Json const step = events_in(folder / "metrics.jsonl")[1];
  // No gradient is that long: the optimizer sees what was measured.
  CHECK(step.at("gradient_norm").get<double>() ==
        doctest::Approx(seen.gradient_norms[1]).epsilon(1e-6));
}

TEST_CASE("a cadence in epochs writes no steps") {
  TemporaryFolder const folder;
  fit({.run_dir = folder.path()}, Log<Every<1, Epoch>>{});
  CHECK(names(events_in(folder / "metrics.jsonl")) ==
        std::vector<std::string>{"begin", "epoch", "validation", "epoch", "validation", "end"});
}

TEST_CASE("two logs with two cadences write two files") {
  TemporaryFolder const folder;
  fit({}, Log<Every<1>>{.path = folder / "often.jsonl"},
      Log<Every<5>>{.path = folder / "seldom.jsonl"});
  CHECK(events_in(folder / "often.jsonl").size() == 16);
  CHECK(events_in(folder / "seldom.jsonl").size() == 8);
}

TEST_CASE("a second fit appends to the log of the first") {
  TemporaryFolder const folder;
  fit({.run_dir = folder.path()}, Log<>{});
  std::string const first = text_of(folder / "metrics.jsonl");
  fit({.run_dir = folder.path()}, Log<>{});
  std::string const both = text_of(folder / "metrics.jsonl");
  CHECK(both.substr(0, first.size()) == first);
  CHECK(lines_of(both).size() == 2 * lines_of(first).size());
}

TEST_CASE("the loss of a step is the weighted mean of its window's micro-batches") {
  TemporaryFolder const folder;
  auto const net = std::make_shared<Mlp>();
  frugal::Trainer trainer{net,
                          frugal::CrossEntropy{},
                          frugal::Settings{.run_dir = folder.path()},
                          Optimize<SGD>{},
                          frugal::Accumulate<3>{},
                          Log<Every<1>>{}};
  // One step: 4, 4 and 2 samples.
  frugal::Batch const all = samples(10);
  double const whole = at::cross_entropy_loss(net->forward(all.data), all.target).item<double>();
  static_cast<void>(trainer.fit(TensorDataset(all, {.batch = 4})));
  auto const events = events_in(folder / "metrics.jsonl");
  REQUIRE(events.at(1).at("event") == "step");
  CHECK(events[1].at("loss").get<double>() == doctest::Approx(whole).epsilon(1e-6));
}

TEST_CASE("a loss that is NaN is null in the log") {
  TemporaryFolder const folder;
  run_script({0.5, std::nan("")}, Log<>{.path = folder / "log"});
  auto const events = events_in(folder / "log");
  CHECK(events.at(2).at("loss") == 0.5);
  REQUIRE(events.at(4).at("event") == "validation");
  CHECK(events.at(4).at("loss").is_null());
}

TEST_CASE("missing folders of a log are created") {
  TemporaryFolder const folder;
  fit({.run_dir = folder / "a/b/c"}, Log<>{});
  CHECK(std::filesystem::exists(folder / "a/b/c/metrics.jsonl"));
}

TEST_CASE("each line is in the file as soon as it is written") {
  TemporaryFolder const folder;
  std::vector<std::size_t> lines;
  Spy spy{.each_step = [&](frugal::Counters const&) {
    lines.push_back(lines_of(text_of(folder / "log")).size());
  }};
  fit({}, Log<Every<1>>{.path = folder / "log"}, spy);
  CHECK(lines[0] == 2);
  CHECK(lines[4] == 6);
}

template <class Error, class Fit>
frugal::Fault fault_of(Fit&& body) {
  try {
    body();
  } catch (Error const& error) {
    return error.fault();
  }
  FAIL_CHECK("no such error came");
  return {};
}

TEST_CASE("a log without a path is refused") {
  CHECK(fault_of<frugal::SettingsError>([] { fit({}, Log<>{}); }).where == "Log::path");
}

TEST_CASE("a log that cannot be opened names its file and the reason") {
  TemporaryFolder const folder;
  std::ofstream(folder / "file") << "in the way";
  auto const fault =
      fault_of<frugal::DataError>([&] { fit({.run_dir = folder / "file"}, Log<>{}); });
  CHECK(fault.what == "the log cannot be opened");
  CHECK(fault.where == (folder / "file/metrics.jsonl"));
  CHECK(fault.why.find("the folder " + (folder / "file").string() + " cannot be created") == 0);
  CHECK(fault.why.find("is not a folder") != std::string::npos);
}

TEST_CASE("a full disk gives one warning, and does not end the run") {
  frugal::Report const report = fit({}, Log<Every<1>>{.path = "/dev/full"});
  CHECK(report.steps == 10);
  REQUIRE(report.warnings.size() == 1);
  CHECK(report.warnings[0].find("the log /dev/full cannot be written (No space left on device)") ==
        0);
}

std::vector<std::uint64_t> steps_in(std::filesystem::path const& log) {
  std::vector<std::uint64_t> steps;
  for (Json const& event : events_in(log)) {
    if (event.at("event") == "step") steps.push_back(event.at("step"));
  }
  return steps;
}

TEST_CASE("lines that could not be written are written when there is space again, each whole") {
  TemporaryFolder const folder;
  std::optional<FullDisk> full;
  Spy spy{.each_step = [&](frugal::Counters const& now) {
    // In the middle of a line, wherever it ends.
    if (now.step == 3) full.emplace(std::filesystem::file_size(folder / "log") + 20);
    if (now.step == 8) full.reset();
  }};
  frugal::Report const report = fit({}, Log<Every<1>>{.path = folder / "log"}, spy);
  CHECK(report.warnings.size() == 1);
  CHECK(steps_in(folder / "log") == Steps{1, 2, 3, 4, 5, 6, 7, 8, 9, 10});
}

TEST_CASE("a log that is deleted is made again, and lines wait for a folder that is") {
  TemporaryFolder const folder;
  std::filesystem::path const log = folder / "logs/log";
  Spy deletes{.each_step = [&](frugal::Counters const& now) {
    if (now.step == 4) std::filesystem::remove(log);
  }};
  CHECK(fit({}, Log<Every<1>>{.path = log}, deletes).warnings.empty());
  CHECK(steps_in(log) == Steps{5, 6, 7, 8, 9, 10});
  Spy moves{.each_step = [&](frugal::Counters const& now) {
    if (now.step == 4) std::filesystem::remove_all(folder / "logs");
    if (now.step == 8) std::filesystem::create_directory(folder / "logs");
  }};
  auto const report = fit({}, Log<Every<1>>{.path = log}, moves);
  REQUIRE(report.warnings.size() == 1);
  CHECK(report.warnings[0].find("cannot be written (No such file or directory)") !=
        std::string::npos);
  CHECK(steps_in(log) == Steps{5, 6, 7, 8, 9, 10});
}

TEST_CASE("a checkpoint has the lines that wait: killed and resumed, each is there once") {
  TemporaryFolder const folder;
  std::filesystem::path const log = folder / "log";
  // Larger than any file of a checkpoint: only the log meets the end of the disk.
  std::ofstream(log) << R"({"event":"old","text":")" << std::string(1 << 20, 'x') << "\"}\n";
  std::optional<FullDisk> full;
  Spy spy{.each_step = [&](frugal::Counters const& now) {
    if (now.step == 2) full.emplace(std::filesystem::file_size(log) + 20);
    if (now.step == 6) full.reset();
  }};
  dying_runs::Job job{.folder = folder / "run", .dies_at = 8};
  frugal::Checkpoint<Every<4>> const saves;
  Log<Every<1>> const logs{.path = log};
  CHECK(dying_runs::run(job, Optimize<SGD>{}, saves, logs, spy).died);
  CHECK(dying_runs::steps_in(folder / "run").back() == 4);
  job.dies_at = 0;
  CHECK(dying_runs::run(job, Optimize<SGD>{}, saves, logs).report.resumed->step == 4);
  Steps all(33);
  std::iota(all.begin(), all.end(), std::uint64_t{1});
  CHECK(steps_in(log) == all);
}

}  // namespace frugal_test::policy_log
