// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <frugal/core/run/context.hpp>
#include <frugal/core/run/run.hpp>
#include <frugal/core/run/run_state.hpp>

#include "core/loop/stand_ins.hpp"

#include <filesystem>
#include <string>
#include <vector>

namespace frugal_test::run_any_run {

using namespace frugal_test::loop;
using frugal::PolicyStates;
using frugal::RunState;
using frugal::StateDict;
using frugal::StateReader;
using frugal::StateWriter;

/// Stands in for a recipe's engine: something that persists.
struct States {
  std::int64_t count = 0;

  template <class Archive>
  void persist(Archive& archive, bool = false, std::string_view only = {}) {
    if (!only.empty() && only != "Counting") return;
    archive.scope("Counting", [&](auto& inner) { inner("count", count); });
  }
  static std::vector<frugal::detail::SavedScope> saved_scopes() { return {{"Counting", false}}; }
  static std::vector<std::string> names_of_first(std::size_t) { return {}; }
};

TEST_CASE("one policy's state is saved and loaded by the name of its scope") {
  States mine{.count = 41};
  auto const all = PolicyStates::of(mine);
  REQUIRE(all.scopes().size() == 1);
  StateDict memory;
  StateWriter writer(memory);
  all.persist_one(writer, "Another");
  CHECK(memory.values.empty());
  all.persist_one(writer, all.scopes()[0].name);
  States theirs;
  StateReader reader(memory);
  PolicyStates::of(theirs).persist_one(reader, "Counting");
  CHECK(theirs.count == 41);
}

StateDict saved(RunState& run) {
  StateDict memory;
  StateWriter writer(memory);
  run.persist(writer);
  return memory;
}

TEST_CASE("a run saves its progress and its policies' states, and another one loads them") {
  torch::nn::Linear module(2, 1);
  frugal::Settings const settings{.seed = 3};
  States mine{.count = 41};
  RunState run{.root = *module, .settings = settings};
  run.links.to_policies(PolicyStates::of(mine), {});
  run.progress.go_to({.step = 7});
  run.rate.set_scale(0.25, {});
  run.control.ask(frugal::End::stop, "EarlyStop");
  run.control.set_unfinished({.hook = "on_step", .completed_by = {"Log", "Log.1"}});
  frugal::Metrics metrics;
  metrics.set("loss", 0.5);
  run.observed.add_validation(metrics, {.step = 5});
  StateDict const memory = saved(run);
  CHECK(std::get<std::int64_t>(memory.values.at("policies/Counting/count")) == 41);

  States theirs;
  RunState other{.root = *module, .settings = settings};
  other.links.to_policies(PolicyStates::of(theirs), {});
  StateReader reader(memory);
  other.persist(reader);
  CHECK_FALSE(reader.unread());
  CHECK(theirs.count == 41);
  CHECK(other.counters() == run.counters());
  CHECK(other.rate.scale() == 0.25);
  CHECK(other.control.stopped_by() == "EarlyStop");
  CHECK(other.control.unfinished().hook == "on_step");
  CHECK(other.control.unfinished().completed_by == std::vector<std::string>{"Log", "Log.1"});
  REQUIRE(other.observed.validations().size() == 1);
  CHECK(other.observed.validations()[0].step == 5);
  CHECK(other.observed.validations()[0].metrics["loss"] == 0.5);
  CHECK(saved(other) == memory);
}

TEST_CASE("a run keeps its newest 1000 validations, and the tables of the last one") {
  torch::nn::Linear module(2, 1);
  frugal::Settings const settings;
  States mine;
  RunState run{.root = *module, .settings = settings};
  run.links.to_policies(PolicyStates::of(mine), {});
  for (std::uint64_t step = 1; step <= 1003; ++step) {
    run.progress.go_to({.step = step});
    frugal::Metrics metrics;
    metrics.set("loss", 1.0 / static_cast<double>(step));
    metrics.set_table("confusion_matrix", at::eye(3));
    run.observed.add_validation(metrics, run.counters());
  }
  auto const check = [](RunState const& found) {
    REQUIRE(found.observed.validations().size() == 1000);
    CHECK(found.observed.validations().front().step == 4);
    CHECK(found.observed.validations().back().step == 1003);
    CHECK(found.observed.validation_count() == 1003);
    CHECK_FALSE(found.observed.validations()[998].metrics.has_table("confusion_matrix"));
    CHECK(found.observed.validations()[999].metrics.has_table("confusion_matrix"));
  };
  check(run);
  StateDict const memory = saved(run);
  CHECK(memory.tensors.size() == 1);
  RunState other{.root = *module, .settings = settings};
  other.links.to_policies(PolicyStates::of(mine), {});
  StateReader reader(memory);
  other.persist(reader);
  CHECK_FALSE(reader.unread());
  check(other);
}

TEST_CASE("a validation is of the current weights until training or the average goes on") {
  torch::nn::Linear module(2, 1);
  frugal::Settings const settings;
  States mine;
  RunState run{.root = *module, .settings = settings};
  run.links.to_policies(PolicyStates::of(mine), {});
  CHECK_FALSE(run.is_judged());
  run.progress.go_to({.micro_batch = 6});
  run.observed.set_averaged(2);
  run.observed.add_validation({}, run.counters());
  CHECK(run.is_judged());
  RunState other{.root = *module, .settings = settings};
  other.links.to_policies(PolicyStates::of(mine), {});
  StateDict const memory = saved(run);
  StateReader reader(memory);
  other.persist(reader);
  CHECK_FALSE(other.is_judged());  // it is at another average
  other.observed.set_averaged(2);
  CHECK(other.is_judged());
  run.observed.set_averaged(3);
  CHECK_FALSE(run.is_judged());
  run.observed.set_averaged(2);
  run.progress.count_micro_batch();  // of a window that was skipped: buffers have moved
  CHECK_FALSE(run.is_judged());
}

TEST_CASE("a recommendation is given once, and an event has its step and time") {
  torch::nn::Linear module(2, 1);
  frugal::Settings const settings;
  RunState run{.root = *module, .settings = settings};
  run.warn("more memory");
  run.warn("a faster disk");
  run.warn("more memory");
  CHECK(run.observed.warnings() == std::vector<std::string>{"more memory", "a faster disk"});

  run.progress.go_to({.step = 9});
  run.progress.resume_from({.from = "there", .step = 9}, 100.0);
  run.record({.name = "resume"});
  REQUIRE(run.observed.events().size() == 1);
  CHECK(run.observed.events()[0].at.step == 9);
  CHECK(run.observed.events()[0].seconds >= 100.0);
  CHECK(run.seconds() >= run.observed.events()[0].seconds);
  REQUIRE(run.progress.resumed());
  CHECK(run.progress.resumed()->from == "there");
}

/// Records an event for every event that it sees, up to four.
struct Echo : frugal::LoopInterface {
  RunState* run = nullptr;
  std::vector<std::string> heard;

  bool validates() const override { return false; }
  frugal::flow validate() override { return frugal::flow::proceed; }
  std::vector<frugal::Check> dry_run(std::size_t) override { return {}; }
  at::Tensor reevaluate() override { return {}; }
  void finish_set_up() override {}
  void move_to(c10::Device) override {}
  void saved(std::filesystem::path const&, std::uint64_t) override {}
  void recorded(frugal::Event const& event) override {
    if (run->observed.events().size() < 4) run->record({.name = event.name + "+"});
    heard.push_back(event.name);
  }
};

TEST_CASE("an event recorded during another one is delivered after it") {
  torch::nn::Linear module(2, 1);
  frugal::Settings const settings;
  RunState run{.root = *module, .settings = settings};
  Echo echo;
  echo.run = &run;
  run.links.to_loop(echo);
  run.record({.name = "a"});
  CHECK(echo.heard == std::vector<std::string>{"a", "a+", "a++", "a+++"});
}

TEST_CASE("advice survives a resume, together with that of the new process before it loads") {
  torch::nn::Linear module(2, 1);
  frugal::Settings const settings;
  RunState run{.root = *module, .settings = settings};
  run.warn("more memory");
  StateDict memory;
  StateWriter writer(memory);
  run.observed.persist_warnings(writer);

  RunState other{.root = *module, .settings = settings};
  other.warn("a faster disk");
  other.warn("more memory");
  StateReader reader(memory);
  other.observed.persist_warnings(reader);
  CHECK_FALSE(reader.unread());
  CHECK(other.observed.warnings() == std::vector<std::string>{"more memory", "a faster disk"});
}

TEST_CASE("advice with a measurement takes the place of what an earlier start has measured") {
  torch::nn::Linear module(2, 1);
  frugal::Settings const settings;
  RunState run{.root = *module, .settings = settings};
  run.observed.warn_measured("training waits for data 62% of the time: use shards");
  run.warn("a faster disk");
  run.observed.warn_measured("training waits for data 58% of the time: use more workers");
  run.observed.warn_measured("training waits for a device 58% of the time");
  CHECK(run.observed.warnings() ==
        std::vector<std::string>{"training waits for data 58% of the time: use more workers",
                                 "a faster disk", "training waits for a device 58% of the time"});
}

TEST_CASE("a run that goes back keeps the advice given since") {
  torch::nn::Linear module(2, 1);
  frugal::Settings const settings;
  States states;
  RunState run{.root = *module, .settings = settings};
  run.links.to_policies(PolicyStates::of(states), {});
  StateDict const before = saved(run);
  run.warn("more memory");
  StateReader reader(before);
  run.persist(reader);
  CHECK(run.observed.warnings() == std::vector<std::string>{"more memory"});
}

TEST_CASE("a checkpoint policy sees the run's files and position, and resumes it") {
  using Context = frugal::Context<torch::nn::Linear>;
  torch::nn::Linear module(2, 1);
  frugal::Settings const settings;
  frugal::Run<Context> run(module, settings, {});
  run.control.set_unfinished({.hook = "on_step"});
  frugal::FitBegin phase(run);
  phase.writes_to("metrics.jsonl");
  phase.resumed({.from = "there", .step = 9}, 100.0);
  CHECK(phase.files() == std::vector<std::filesystem::path>{"metrics.jsonl"});
  CHECK(phase.unfinished() == "on_step");
  CHECK(phase.seconds() >= 100.0);
  REQUIRE(run.progress.resumed());
  CHECK(run.progress.resumed()->step == 9);
}

TEST_CASE("a run knows its module's parameters and begins on the settings' device") {
  torch::nn::Linear module(2, 1);
  frugal::Settings const settings{.device = c10::Device(c10::kMeta)};
  RunState const run{.root = *module, .settings = settings};
  CHECK(run.parameters.size() == 2);
  CHECK(run.device == c10::Device(c10::kMeta));
}

TEST_CASE("one policy says where a run begins, and a second one may not disagree") {
  torch::nn::Linear module(2, 1);
  frugal::Settings settings;
  settings.device = c10::Device("cuda:0");
  RunState run{.root = *module, .settings = settings};
  run.begin_on(c10::kCPU);
  run.begin_on(c10::kCPU);
  CHECK(run.device.is_cpu());
  CHECK_THROWS_WITH_AS(run.begin_on(c10::Device("cuda:1")),
                       doctest::Contains("two policies begin the run on cpu and on cuda:1"),
                       frugal::SettingsError);
}

}  // namespace frugal_test::run_any_run
