// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <sys/resource.h>

#include <csignal>
#include <fstream>
#include <optional>

#include <frugal/policy/clip.hpp>
#include <frugal/policy/log.hpp>
#include <frugal/policy/schedule.hpp>

#include "support/files.hpp"
#include "support/scripted.hpp"

namespace frugal_test::policy_log {

using namespace frugal_test::support;
using namespace frugal::literals;
using frugal::Epoch;
using frugal::Every;
using frugal::Log;
using frugal::Optimize;
using frugal::Resident;
using frugal::SGD;

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
  return trainer.fit(Resident(samples(18), {.batch = 4}), Resident(samples(9, 92), {.batch = 4}));
}

TEST_CASE(
    "a log has a line for the beginning, each due step, each validation, epoch, and the end") {
  TemporaryFolder const folder;
  Seen seen;
  auto const report =
      fit({.run = folder.path()}, Log<Every<2>>{},
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
  fit({.run = folder.path()}, Log<Every<2>>{}, frugal::ClipNorm<1000.0_r>{}, Spy{.seen = &seen});
  Json const step = events_in(folder / "metrics.jsonl")[1];
  // No gradient is that long: the optimizer sees what was measured.
  CHECK(step.at("gradient_norm").get<double>() ==
        doctest::Approx(seen.gradient_norms[1]).epsilon(1e-6));
}

TEST_CASE("a cadence in epochs writes no steps") {
  TemporaryFolder const folder;
  fit({.run = folder.path()}, Log<Every<1, Epoch>>{});
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
  fit({.run = folder.path()}, Log<>{});
  std::string const first = text_of(folder / "metrics.jsonl");
  fit({.run = folder.path()}, Log<>{});
  std::string const both = text_of(folder / "metrics.jsonl");
  CHECK(both.substr(0, first.size()) == first);
  CHECK(lines_of(both).size() == 2 * lines_of(first).size());
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
  fit({.run = folder / "a/b/c"}, Log<>{});
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
  auto const fault = fault_of<frugal::DataError>([&] { fit({.run = folder / "file"}, Log<>{}); });
  CHECK(fault.what == "the log cannot be opened");
  CHECK(fault.where == (folder / "file/metrics.jsonl"));
  CHECK(fault.why.find("the folder " + (folder / "file").string() + " cannot be created") == 0);
  CHECK(fault.why.find("is not a folder") != std::string::npos);
}

TEST_CASE("a full disk gives one line of advice, and does not end the run") {
  frugal::Report const report = fit({}, Log<Every<1>>{.path = "/dev/full"});
  CHECK(report.steps == 10);
  REQUIRE(report.advice.size() == 1);
  CHECK(report.advice[0].find("the log /dev/full cannot be written (No space left on device)") ==
        0);
}

/// For its lifetime, no file of this process can grow beyond a size.
class SizeLimit {
 public:
  explicit SizeLimit(rlim_t bytes) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    handler_ = std::signal(SIGXFSZ, SIG_IGN);
    rlimit const less{bytes, before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &less);
  }
  SizeLimit(SizeLimit const&) = delete;
  SizeLimit& operator=(SizeLimit const&) = delete;
  ~SizeLimit() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }

 private:
  rlimit before_{};
  void (*handler_)(int) = nullptr;
};

TEST_CASE("lines that could not be written are written when there is space again, each whole") {
  TemporaryFolder const folder;
  std::optional<SizeLimit> full;
  Spy spy{.each_step = [&](frugal::Counters const& now) {
    // In the middle of a line, wherever it ends.
    if (now.step == 3) full.emplace(std::filesystem::file_size(folder / "log") + 20);
    if (now.step == 8) full.reset();
  }};
  frugal::Report const report = fit({}, Log<Every<1>>{.path = folder / "log"}, spy);
  CHECK(report.advice.size() == 1);
  std::vector<std::uint64_t> steps;
  for (Json const& event : events_in(folder / "log")) {
    if (event.at("event") == "step") steps.push_back(event.at("step"));
  }
  CHECK(steps == std::vector<std::uint64_t>{1, 2, 3, 4, 5, 6, 7, 8, 9, 10});
}

}  // namespace frugal_test::policy_log
