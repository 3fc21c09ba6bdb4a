// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <frugal/core/loop/interruption.hpp>

#include "stand_ins.hpp"

#include <concepts>
#include <cstddef>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace frugal_test::loop_interruption {

using namespace frugal_test::loop;
using frugal::flow;
using frugal::detail::Interruption;

/// A recipe of three policies, of which number 1 saves. What each event does is set.
struct Policies {
  std::vector<std::string> seen{};  ///< events, and the names that they skip
  flow verdict = flow::proceed;
  bool asks = false;
  bool recovers = false;
  std::size_t reaches = 0;  ///< the last subscriber that is called
  std::vector<std::string> completed{};
  void (*raises)() = nullptr;

  template <class Hook>
  static constexpr bool has_subscribers = true;
  template <class Hook>
  static constexpr bool has_own_verdicts = false;
  template <class Service>
  static constexpr bool provides = std::same_as<Service, frugal::service::recover>;
  template <class Service>
  static constexpr std::size_t provider_index() {
    return 1;
  }
  template <class Service>
  Policies& provider() {
    return *this;
  }
  bool recover(frugal::CheckpointPhase&, frugal::LossError const&) { return recovers; }

  template <class Hook, class Phase, class OnVerdict>
  flow emit_to_others(std::vector<std::string>& done, std::size_t& current, Phase&,
                      OnVerdict&& on_verdict) {
    std::string text(Hook::name);
    for (std::string const& each : done) text += " -" + each;
    seen.push_back(std::move(text));
    current = reaches;
    if (raises != nullptr) {
      done.insert(done.end(), completed.begin(), completed.end());
      raises();
    }
    if (verdict == flow::stop) on_verdict("EarlyStop");
    return verdict;
  }
  template <class Hook, class Phase, class OnVerdict>
  bool ask(Phase&, OnVerdict&& on_verdict) {
    if (asks) on_verdict("Spot");
    return asks;
  }
  template <class Hook, class Phase>
  void emit(Phase&) {
    seen.emplace_back(Hook::name);
  }
};

struct Saver final : frugal::SaverInterface {
  bool save(frugal::CheckpointPhase& at) override {
    saved.push_back(at.run_state().control.unfinished().hook);
    return true;
  }
  double save_seconds() const override { return 0; }
  std::vector<std::string> saved{};  ///< what was unfinished at each save
};

/// A run of these policies.
struct SmallRun {
  SmallRun() { state.links.to_policies({}, frugal::PolicyEvents::of(policies)); }
  frugal::PolicyEvents const& events() const { return state.links.events(); }
  Net module{};
  Settings settings{};
  Policies policies{};
  Saver saver{};
  frugal::RunState state{.root = module, .settings = settings};
  Interruption interruption{state};
};

TEST_CASE("a verdict stops the run, and names the policy") {
  SmallRun run;
  run.interruption.emit(run.events().step);
  CHECK(!run.interruption.stopped());
  run.policies.verdict = flow::stop;
  run.interruption.emit(run.events().epoch_end);
  CHECK(run.interruption.stopped());
  CHECK(run.state.control.stopped_by() == "EarlyStop");
  CHECK(!run.state.control.preempted());
  CHECK(run.policies.seen == std::vector<std::string>{"on_step", "on_epoch_end"});
}

TEST_CASE("a preemption that a policy asks for saves, and ends the run after the event") {
  SmallRun run;
  run.state.links.to_saver(run.saver);
  run.policies.asks = true;
  run.interruption.emit(run.events().step);
  CHECK(run.policies.seen == std::vector<std::string>{"on_step", "on_preempt"});
  CHECK(run.saver.saved == std::vector<std::string>{""});
  CHECK(run.interruption.stopped());
  CHECK(run.state.control.preempted());
  CHECK(run.state.control.preemption_saved());
  CHECK(run.state.control.ended_by() == "Spot");
}

TEST_CASE("before the first window there is nothing to save") {
  SmallRun run;
  run.state.links.to_saver(run.saver);
  run.policies.asks = true;
  run.interruption.preempt_before_training();
  CHECK(run.saver.saved.empty());
  CHECK(run.state.control.preempted());
  CHECK(run.state.control.preemption_saved());
}

TEST_CASE("an interrupted event is left to the next start, which skips those that have seen it") {
  SmallRun run;
  run.state.links.to_saver(run.saver);
  run.policies.raises = [] { throw frugal::Interrupted{}; };
  run.policies.completed = {"Log"};
  run.interruption.emit(run.events().step);
  CHECK(run.saver.saved == std::vector<std::string>{"on_step"});
  CHECK(run.state.control.preempted());

  SmallRun next;
  next.state.control.set_unfinished(run.state.control.unfinished());
  next.interruption.complete_unfinished();
  CHECK(next.policies.seen == std::vector<std::string>{"on_step -Log"});
  CHECK(next.state.control.unfinished().hook.empty());
  next.interruption.complete_unfinished();
  CHECK(next.policies.seen.size() == 1);
}

TEST_CASE(
    "an error of a policy passes, and what was trained is saved, unless it is the one that saves") {
  for (std::size_t const failing : {std::size_t{0}, std::size_t{1}, std::size_t{2}}) {
    CAPTURE(failing);
    SmallRun run;
    run.state.links.to_saver(run.saver);
    run.policies.reaches = failing;
    run.policies.raises = [] { throw std::runtime_error("no disk"); };
    CHECK_THROWS_WITH(run.interruption.emit(run.events().epoch_end), "no disk");
    std::vector<std::string> const saved =
        failing == 1 ? std::vector<std::string>{} : std::vector<std::string>{"on_epoch_end"};
    CHECK(run.saver.saved == saved);
    CHECK(!run.state.control.preempted());
  }
}

TEST_CASE("of processes that train together, one that fails saves nothing") {
  SmallRun run;
  run.state.links.to_saver(run.saver);
  run.state.links = frugal::RunLinks({.agrees = true});
  run.state.links.to_policies({}, frugal::PolicyEvents::of(run.policies));
  run.policies.raises = [] { throw std::runtime_error("no disk"); };
  CHECK_THROWS_WITH(run.interruption.emit(run.events().step), "no disk");
  CHECK(run.saver.saved.empty());
}

TEST_CASE("a bad loss goes to the policy that recovers, or passes") {
  auto const bad_loss = [] {
    throw frugal::LossError(
        {.what = "a loss is NaN", .where = "step 3", .why = "of a test", .fix = "None."}, {}, 0);
  };
  SmallRun run;
  run.state.control.close(frugal::End::stop);
  CHECK_THROWS_AS(run.interruption.with_recovery(bad_loss), frugal::LossError);
  CHECK(run.interruption.stopped());
  run.policies.recovers = true;
  run.interruption.with_recovery(bad_loss);
  CHECK(!run.interruption.stopped());
}

}  // namespace frugal_test::loop_interruption
