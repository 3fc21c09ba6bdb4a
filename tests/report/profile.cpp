// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <frugal/base/json.hpp>
#include <frugal/frugal.hpp>
#include <frugal/report.hpp>

#include <torch/csrc/autograd/profiler_kineto.h>

#include "support/dying_runs.hpp"
#include "support/files.hpp"
#include "support/running.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <locale>
#include <memory>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <variant>
#include <vector>

namespace frugal_test::policy_profile {

using namespace support;
using namespace support::dying_runs;
using frugal::Every;
using frugal::Nvtx;
using frugal::PerEpoch;
using frugal::Profile;
using frugal::Seconds;
using frugal::detail::Json;
using frugal::watch::Bound;
using Optimizer = frugal::Optimize<frugal::AdamW>;
using Saves = frugal::Checkpoint<Every<4>>;
using Short = Profile<frugal::Steps<3>, PerEpoch>;

/// Windows of three steps, whatever the device's share of the time: another program may need it.
Short windows() { return {.warm_up = 2, .least_busy = 0}; }

/// An objective of one large product and little else.
struct LargeProduct {
  std::int64_t size = 256;

  at::Tensor operator()(torch::nn::Linear& net, frugal::Batch const& batch) const {
    at::Tensor const square = net->weight.detach().sum() * at::ones({size, size});
    return net(batch.data).square().mean() + 0 * square.matmul(square).mean();
  }
};

/// A source whose batches take long to come, without operators: it computes, and does not sleep.
struct Starving {
  explicit Starving(std::int64_t length) : rest(length), left(length) {}
  std::optional<frugal::Batch> next() {
    if (left-- <= 0) return std::nullopt;
    double sum = 0;
    for (int i = 1; i < 30'000'000; ++i) sum += std::sqrt(static_cast<double>(i));
    return frugal::Batch{batch * (sum > 0 ? 1 : 0), at::zeros({4}, at::kLong)};
  }
  void seek(frugal::Cursor const&) { left = rest; }
  at::Tensor batch = at::ones({4, 6});
  std::int64_t rest, left;
};

struct Read {
  frugal::Report report;
  std::vector<frugal::WindowProfile> windows;
};

template <class P>
Read run_large(std::filesystem::path const& folder, P const& profile, std::uint64_t epochs = 1,
               LargeProduct const& objective = {}) {
  frugal::Trainer trainer{torch::nn::Linear(6, 3),
                          objective,
                          frugal::Settings{.run_dir = folder, .epochs = epochs},
                          Optimizer{},
                          frugal::Log<>{.path = "/dev/null"},
                          profile};
  frugal::Report report = trainer.fit(frugal::TensorDataset(samples(80), {.batch = 4}));
  return {std::move(report), trainer.profile().windows()};
}

TEST_CASE("the hot spot of a job that is one large product is that product") {
  auto const read = run_large({}, windows(), 1, {.size = 1024});
  REQUIRE(read.windows.size() == 1);
  frugal::WindowProfile const& window = read.windows[0];
  REQUIRE_FALSE(window.hot_spots.empty());
  CHECK(window.hot_spots[0].name == "aten::mm");
  CHECK(window.hot_spots[0].share > 0.3);
  CHECK(window.hot_spots[0].calls >= 3);
  CHECK(window.bound == Bound::compute);
  CHECK(window.steps == 3);
  CHECK(window.step == 5);
  CHECK(window.device_idle < 0.5);
  CHECK(window.overhead_seconds > 0);
  CHECK(window.trace.empty());  // the run has no folder
  // Floats: at least two of the squares live at once.
  CHECK(window.peak.bytes >= 2 * 1024 * 1024 * 4);
}

TEST_CASE("the parts of a step are ranges, each as often as the step has it") {
  TemporaryFolder const folder;
  frugal::Trainer trainer{std::make_shared<Mlp>(),
                          frugal::CrossEntropy{},
                          frugal::Settings{.run_dir = folder.path(), .epochs = 1},
                          Optimizer{},
                          frugal::Accumulate<2>{},
                          frugal::Validate<Every<4>>{},
                          Saves{},
                          Profile<frugal::Steps<4>, PerEpoch>{.warm_up = 2}};
  auto const report = trainer.fit(frugal::TensorDataset(samples(96), {.batch = 4}),
                                  frugal::TensorDataset(samples(8, 92)));
  CHECK(report.steps == 12);
  REQUIRE(trainer.profile().windows().size() == 1);
  auto const calls = [&](std::string_view name) -> std::uint64_t {
    for (auto const& each : trainer.profile().windows()[0].ranges) {
      if (each.name == name) return each.calls;
    }
    return 0;
  };
  // Steps 3 to 6, and step 4 validates and saves.
  CHECK(calls("frugal::forward") == 8);
  CHECK(calls("frugal::backward") == 8);
  CHECK(calls("frugal::optimizer") == 4);
  CHECK(calls("frugal::policies") == 4);
  CHECK(calls("frugal::data") ==
        12);  // before each of 8 micro-batches, and behind each of the last
  CHECK(calls("frugal::validation") == 1);
  CHECK(calls("frugal::checkpoint") == 1);
}

TEST_CASE("a starved job is input-bound, is sent to its data, and is not profiled again") {
  // On a busy machine the few operators of this job take longer than the default's share, whose
  // rule tests/report/profile/window_profile.cpp shows with traces.
  CHECK(Short{}.least_busy == 0.2);
  frugal::Trainer trainer{torch::nn::Linear(6, 3), frugal::CrossEntropy{},
                          frugal::Settings{.epochs = 3}, Optimizer{},
                          Short{.warm_up = 2, .least_busy = 0.7}};
  frugal::Report const report = trainer.fit(Starving(8));
  REQUIRE(trainer.profile().windows().size() == 1);
  auto const& window = trainer.profile().windows()[0];
  CHECK(window.bound == Bound::input);
  CHECK(window.device_idle > 0.3);
  CHECK(window.hot_spots[0].name == "frugal::data");
  CHECK(window.advice.find("docs/data/loading.md") != std::string::npos);
  CHECK(advises(report, "no further windows"));
  CHECK(advises(report, "Loader"));
  CHECK(trainer.profile().finding().find("input-bound") != std::string::npos);
}

TEST_CASE("each epoch has one window, at its cadence") {
  CHECK(run_large({}, windows(), 3).windows.size() == 3);
  CHECK(run_large({},
                  Profile<frugal::Steps<2>, Every<2, frugal::Epoch>>{.warm_up = 2, .least_busy = 0},
                  4)
            .windows.size() == 2);
  auto const steps =
      run_large({}, Profile<frugal::Steps<2>, Every<10>>{.warm_up = 4, .least_busy = 0}, 2).windows;
  REQUIRE(steps.size() == 3);  // due at steps 10, 20 and 30; at 40 the run ends
  CHECK(steps[0].step == 16);
  CHECK(steps[1].step == 26);
}

TEST_CASE("a window that is open when the run ends is read") {
  auto const read = run_large({}, Profile<Seconds<1000>, PerEpoch>{.warm_up = 4, .steps = 1000});
  REQUIRE(read.windows.size() == 1);
  CHECK(read.windows[0].steps == 16);
}

TEST_CASE("a run that is too short for a window says so, once") {
  for (auto const& read : {run_large({}, Profile<>{.warm_up = 100}, 2),
                           run_large({}, Profile<Seconds<3>, Every<1000>>{})}) {
    CHECK(read.windows.empty());
    REQUIRE(read.report.warnings.size() == 1);
    CHECK(advises(read.report, "before its first window"));
    CHECK(advises(read.report, "warm_up is 10"));  // 100, or 10
  }
  CHECK_FALSE(advises(run_large({}, windows()).report, "first window"));
}

TEST_CASE("a run without a window says nothing if it is preempted, or has no steps left") {
  TemporaryFolder const folder;
  Profile<> const never{.warm_up = 100};
  std::stop_source asked;
  asked.request_stop();
  frugal::Trainer trainer{torch::nn::Linear(6, 3), frugal::CrossEntropy{},
                          frugal::Settings{.stop = asked.get_token()}, Optimizer{}, never};
  auto const preempted = trainer.fit(frugal::TensorDataset(samples(80), {.batch = 4}));
  CHECK(preempted.preempted);
  CHECK_FALSE(advises(preempted, "first window"));
  Job const job{.folder = folder.path()};
  run(job, Optimizer{}, Saves{});
  auto const over = run(job, Optimizer{}, Saves{}, never).report;
  REQUIRE(over.resumed);
  CHECK(over.resumed->step == over.steps);
  CHECK_FALSE(advises(over, "first window"));
}

TEST_CASE("the last steps of a run that had its windows say nothing either") {
  TemporaryFolder const folder;
  Job job{.folder = folder.path(), .dies_at = 31};  // in the last epoch, behind its window
  CHECK(run(job, Optimizer{}, Saves{}, windows()).died);
  job.dies_at = 0;
  CHECK_FALSE(advises(run(job, Optimizer{}, Saves{}, windows()).report, "first window"));
}

/// The text members of an event, checked against the Trace Event Format ("Trace Event Format",
/// Google, 2016): what Perfetto and chrome://tracing read.
void check_event(Json const& event, std::set<std::string>& phases) {
  REQUIRE(event.is(Json::Kind::object));
  Json const* const phase = event.find("ph");
  REQUIRE(phase != nullptr);
  phases.insert(phase->text());
  auto const number = [&](char const* name) {
    Json const* const found = event.find(name);
    return found != nullptr && found->as_double();
  };
  CHECK(event.find("name") != nullptr);
  CHECK(event.find("pid") != nullptr);
  CHECK(event.find("tid") != nullptr);
  CHECK(number("ts"));
  if (phase->text() == "X") CHECK(number("dur"));
  if (phase->text() == "C") {
    REQUIRE(event.find("args") != nullptr);
    CHECK(event.find("args")->find("bytes")->as_signed());
  }
}

TEST_CASE("the trace is in the trace event format, with ranges, operators and the memory's curve") {
  TemporaryFolder const folder;
  auto const read = run_large(folder.path(), windows());
  REQUIRE(read.windows.size() == 1);
  CHECK(read.windows[0].trace == "profile/step-5.trace.json");
  auto const trace = Json::parse(text_of(folder / read.windows[0].trace));
  REQUIRE(trace);
  Json const* const events = trace->find("traceEvents");
  REQUIRE(events != nullptr);
  std::set<std::string> phases;
  std::set<std::string> names;
  double begin = 1e300;
  double end = 0;
  for (Json const& each : events->items()) {
    check_event(each, phases);
    names.insert(each.find("name")->text());
    if (each.find("cat") != nullptr && each.find("cat")->text() == "user_annotation") {
      begin = std::min(begin, *each.find("ts")->as_double());
      end = std::max(end, *each.find("ts")->as_double() + *each.find("dur")->as_double());
    }
  }
  CHECK(phases.contains("X"));
  CHECK(phases.contains("C"));
  for (char const* name : {"aten::mm", "frugal::forward", "frugal::data", "tensor bytes"}) {
    CHECK(names.contains(name));
  }
  // The curve lies over the operators that it belongs to, on the same clock.
  for (Json const& each : events->items()) {
    if (each.find("ph")->text() != "C") continue;
    CHECK(*each.find("ts")->as_double() >= begin - 1);
    CHECK(*each.find("ts")->as_double() <= end + 1);
  }
  CHECK(entries(folder / "profile") == 2);  // no part of a file is left
}

TEST_CASE("hot_spots.json has each window, and no more traces are kept than asked for") {
  TemporaryFolder const folder;
  auto const read = run_large(folder.path(), Short{.warm_up = 2, .traces = 2, .least_busy = 0}, 4);
  REQUIRE(read.windows.size() == 4);
  CHECK(read.windows[2].trace.empty());
  CHECK(entries(folder / "profile") == 3);
  auto const file = Json::parse(text_of(folder / "profile/hot_spots.json"));
  REQUIRE(file);
  CHECK(file->find("version")->as_unsigned() == 1);
  auto const& windows = file->find("windows")->items();
  REQUIRE(windows.size() == 4);
  for (std::size_t i = 0; i < windows.size(); ++i) {
    CHECK(windows[i].find("step")->as_unsigned() == read.windows[i].step);
    CHECK(windows[i].find("bound")->text() == frugal::watch::name_of(read.windows[i].bound));
    CHECK(windows[i].find("hot_spots")->items()[0].find("name")->text() ==
          read.windows[i].hot_spots.at(0).name);
    CHECK_FALSE(windows[i].find("memory")->items().empty());
    double idle = *windows[i].find("device_idle")->as_double();
    CHECK(idle == doctest::Approx(read.windows[i].device_idle));
  }
}

TEST_CASE("without traces the windows are still written") {
  TemporaryFolder const folder;
  auto const read = run_large(folder.path(), Short{.warm_up = 2, .traces = 0, .least_busy = 0}, 2);
  REQUIRE(read.windows.size() == 2);
  CHECK(entries(folder / "profile") == 1);
  auto const file = Json::parse(text_of(folder / "profile/hot_spots.json"));
  REQUIRE(file);
  CHECK(file->find("windows")->items().size() == 2);
}

/// Keeps the events and the gauge that loggers see.
struct Listener {
  struct kind : frugal::optional_kind {
    static constexpr std::string_view name = "profile.Listener";
  };
  using listens = frugal::list<frugal::on::recorded, frugal::on::step>;
  using after = frugal::list<frugal::kinds::profile>;
  std::vector<frugal::Event>* events = nullptr;
  std::optional<double>* idle = nullptr;

  class State {
   public:
    using transient = void;
    explicit State(Listener const& settings) : events_(settings.events), idle_(settings.idle) {}
    void on_recorded(frugal::Recorded& phase) { events_->push_back(phase.event); }
    void on_step(frugal::Step& phase) { *idle_ = phase.gauges().find("device_idle"); }

   private:
    std::vector<frugal::Event>* events_;
    std::optional<double>* idle_;
  };
};

TEST_CASE("a window is an event for the log, and a gauge for whoever shows gauges") {
  std::vector<frugal::Event> events;
  std::optional<double> idle;
  frugal::Trainer trainer{torch::nn::Linear(6, 3),
                          LargeProduct{},
                          frugal::Settings{.epochs = 1},
                          Optimizer{},
                          windows(),
                          Listener{.events = &events, .idle = &idle}};
  CHECK(trainer.fit(frugal::TensorDataset(samples(80), {.batch = 4})).steps == 20);
  REQUIRE(events.size() == 1);
  CHECK(events[0].name == "profile");
  std::set<std::string> names;
  for (auto const& [name, value] : events[0].fields) CHECK(names.insert(name).second);
  for (char const* name : {"window_seconds", "device_idle", "bound", "advice", "overhead_seconds",
                           "trace", "top1", "top5"}) {
    CHECK(names.contains(name));
  }
  // A line of the log has these names itself.
  for (char const* name : {"event", "step", "epoch", "samples", "seconds"}) {
    CHECK_FALSE(names.contains(name));
  }
  REQUIRE(idle);
  CHECK(*idle == trainer.profile().windows()[0].device_idle);
}

TEST_CASE("weights, losses and validations are in the same bits with it and without") {
  auto const plain = run({}, Optimizer{});
  for (auto const& profile : {windows(), Short{.warm_up = 2, .memory = false, .least_busy = 0}}) {
    auto const profiled = run({}, Optimizer{}, profile);
    CHECK(same_bits(profiled.tensors, plain.tensors));
    CHECK(profiled.losses == plain.losses);
    CHECK(profiled.report.validations[2].metrics == plain.report.validations[2].metrics);
  }
}

TEST_CASE("outside of its windows it dispatches no operator") {
  auto const count = [](auto const&... policies) {
    return operators_of([&] { run({}, Optimizer{}, policies...); });
  };
  CHECK(count(Profile<>{.warm_up = 1000}) == count());
}

TEST_CASE("a resumed run does not repeat an epoch's window, and keeps those of before") {
  TemporaryFolder const folder;
  Job job{.folder = folder.path(), .dies_at = 31};  // in the last epoch, behind its window
  std::vector<std::uint64_t> const each_epoch{5, 16, 27};
  auto const steps_of = [&] {
    std::vector<std::uint64_t> steps;
    auto const file = Json::parse(text_of(folder / "profile/hot_spots.json"));
    for (Json const& each : file->find("windows")->items()) {
      steps.push_back(*each.find("step")->as_unsigned());
    }
    return steps;
  };
  CHECK(run(job, Optimizer{}, Saves{}, windows()).died);
  CHECK(steps_of() == each_epoch);
  job.dies_at = 0;
  auto const resumed = run(job, Optimizer{}, Saves{}, windows());
  CHECK(steps_of() == each_epoch);
  auto const whole = run({.folder = folder / "whole"}, Optimizer{}, Saves{});
  CHECK(same_bits(resumed.tensors, whole.tensors));
}

TEST_CASE("a window that was lost with the steps after a checkpoint is made again") {
  TemporaryFolder const folder;
  Job job{.folder = folder.path(), .dies_at = 7};  // behind the window, at whose end is no save
  CHECK(run(job, Optimizer{}, Saves{}, windows()).died);
  job.dies_at = 0;
  run(job, Optimizer{}, Saves{}, windows());
  auto const file = Json::parse(text_of(folder / "profile/hot_spots.json"));
  CHECK(file->find("windows")->items()[0].find("step")->as_unsigned() == 9);
  CHECK(file->find("windows")->items().size() == 3);
}

TEST_CASE("an error in a window ends the profiler with the run") {
  Job const job{.folder = {}, .dies_at = 5};
  CHECK(run(job, Optimizer{}, Profile<>{.warm_up = 2}).died);
  CHECK_FALSE(torch::profiler::impl::profilerEnabled());
  CHECK(run_large({}, windows()).windows.size() == 1);  // and another one may begin
}

/// A profiler of the user's own.
class Foreign {
 public:
  Foreign() {
    torch::autograd::profiler::prepareProfiler(config(), activities());
    torch::autograd::profiler::enableProfiler(config(), activities());
  }
  Foreign(Foreign const&) = delete;
  Foreign& operator=(Foreign const&) = delete;
  ~Foreign() { end(); }
  std::size_t end() {
    if (!running_) return 0;
    running_ = false;
    return torch::autograd::profiler::disableProfiler()->events().size();
  }

 private:
  using Activities = std::set<torch::autograd::profiler::ActivityType>;
  static Activities activities() { return {torch::autograd::profiler::ActivityType::CPU}; }
  static torch::autograd::profiler::ProfilerConfig config() {
    return torch::autograd::profiler::ProfilerConfig(
        torch::autograd::profiler::ProfilerState::KINETO);
  }
  bool running_ = true;
};

TEST_CASE("next to another profiler it says so once, and leaves that one alone") {
  Foreign foreign;
  auto const read = run_large({}, windows(), 2);
  CHECK(read.windows.empty());
  CHECK(read.report.steps == 40);
  REQUIRE(read.report.warnings.size() == 1);
  CHECK(read.report.warnings[0].find("another profiler is active") != std::string::npos);
  CHECK(foreign.end() > 1000);
}

TEST_CASE("a profiler of another thread is left alone as well") {
  Foreign foreign;
  Read read;
  std::thread([&] { read = run_large({}, windows()); }).join();
  CHECK(read.windows.empty());
  CHECK(advises(read.report, "another profiler is active"));
  at::ones({4}).sum();
  CHECK(foreign.end() > 0);
}

TEST_CASE("a folder that cannot be written costs the files, not the run and not the verdict") {
  TemporaryFolder const folder;
  std::ofstream(folder / "profile") << "no folder";
  auto const read = run_large(folder.path(), windows(), 2);
  CHECK(read.report.steps == 40);
  CHECK(read.windows.size() == 2);
  CHECK(
      std::count_if(read.report.warnings.begin(), read.report.warnings.end(), [](auto const& each) {
        return each.find("cannot be written") != std::string::npos;
      }) == 1);
}

TEST_CASE("parts of files that a kill has left are gone when the next process begins") {
  TemporaryFolder const folder;
  std::filesystem::create_directories(folder / "profile");
  std::ofstream(folder / "profile/step-9.trace.json.part") << "{";
  run_large(folder.path(), windows());
  CHECK(entries(folder / "profile") == 2);
}

/// Numbers in groups of three, as a program may have them on its own streams.
struct Grouping : std::numpunct<char> {
  char do_thousands_sep() const override { return '.'; }
  std::string do_grouping() const override { return "\3"; }
};

TEST_CASE("a program's locale changes no file") {
  TemporaryFolder const folder;
  std::locale const before = std::locale::global(std::locale(std::locale::classic(), new Grouping));
  auto const read = run_large(folder.path(), windows());
  std::locale::global(before);
  REQUIRE(read.windows.size() == 1);
  CHECK(Json::parse(text_of(folder / read.windows[0].trace)));
  CHECK(Json::parse(text_of(folder / "profile/hot_spots.json")));
}

TEST_CASE("NVTX ranges without CUDA are one recommendation, and the window is as ever") {
  if (frugal::detail::StepRanges::has_nvtx()) return;
  auto const read = run_large({}, Profile<frugal::Steps<2>, PerEpoch, Nvtx>{.warm_up = 2});
  CHECK(read.windows.size() == 1);
  CHECK(advises(read.report, "NVTX"));
}

TEST_CASE("a window without steps or without a warm-up is refused") {
  CHECK_THROWS_AS(run_large({}, Short{.warm_up = 1}), frugal::SettingsError);
  CHECK_THROWS_AS(run_large({}, Short{.steps = 0}), frugal::SettingsError);
}

}  // namespace frugal_test::policy_profile
