// SPDX-License-Identifier: Apache-2.0
#include "support/dying_runs.hpp"
#include "support/files.hpp"
#include "support/running.hpp"

#include <doctest/doctest.h>

#include <frugal/core/compose/recipe.hpp>
#include <frugal/frugal.hpp>
#include <frugal/policy/accumulate.hpp>
#include <frugal/policy/accumulate/split.hpp>
#include <frugal/policy/checkpoint/saved_recipe.hpp>
#include <frugal/policy/clip.hpp>
#include <frugal/policy/cuda_graph.hpp>
#include <frugal/policy/optimize.hpp>
#include <frugal/policy/precision.hpp>
#include <frugal/policy/schedule.hpp>
#include <frugal/policy/validate.hpp>
#include <frugal/report.hpp>

#include <nlohmann/json.hpp>

#include <cmath>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace frugal_test::checkpoint_saved_name {

using namespace frugal;
using frugal::detail::portable_name;
using frugal::detail::saved_name;

/// A declared name; arguments in unspecified order.
struct Mine {
  static constexpr std::string_view identity = "Mine, with cheese";
};
template <class T, class U, int N>
struct Odd {};

// A constant expression with g++, so that compiling this file proves it; clang with g++ 12's
// library cannot evaluate a std::string in one.
#if defined(__clang__)
#define NAMED(text, ...) CHECK(saved_name<__VA_ARGS__>() == (text))
#else
#define NAMED(text, ...) static_assert(saved_name<__VA_ARGS__>() == (text))
#endif

TEST_CASE("every compiler gives a recipe the same name") {
  NAMED("Accumulate<8>", Accumulate<8>);
  NAMED("Accumulate<Auto>", Accumulate<Auto>);
  NAMED("Optimize<AdamW>", Optimize<AdamW>);
  NAMED("Precision<FromEnv<FP32, BF16>>", Precision<FromEnv<FP32, BF16>>);
  NAMED("NoClip", NoClip);
  NAMED("ClipNorm<1/2>", ClipNorm<0.5>);
  NAMED("Schedule<>", Schedule<>);
  NAMED("Validate<Every<1, Epoch>>", Validate<>);
  NAMED("Validate<Every<500, OptimizerStep>, Accuracy>", Validate<Every<500>, Accuracy>);
  NAMED("Every<Auto, OptimizerStep>", Every<Auto>);
  NAMED("MultiStepDecay<1/10, 30, 60>", MultiStepDecay<0.1, 30, 60>);
  NAMED("Schedule<Warmup<10>, Plateau<1/2, Patience<2>, Watch<'accuracy', 1>>>",
        Schedule<Warmup<10>, Plateau<0.5, Patience<2>, WatchAccuracy>>);
  NAMED("Ramp<-1/2, 1, 0>", Ramp<Rational{-1, 2}, 1, 0>);
  NAMED("Mine, with cheese", Mine);
  NAMED("Recipe<Mine, with cheese>", frugal::Recipe<Mine>);
}

TEST_CASE("options have one order in a name, whatever the order in which they are written") {
  NAMED("Validate<Every<1, Epoch>, Accuracy>", Validate<Accuracy>);
  NAMED("Validate<Every<1, Epoch>, Accuracy>", Validate<Accuracy, Every<1, Epoch>>);
  NAMED("Schedule<Plateau<1/10, Patience<10>, Watch<'loss', 0>>>", Schedule<Plateau<>>);
  NAMED("Schedule<Plateau<1/2, Patience<2>, Watch<'accuracy', 1>>>",
        Schedule<Plateau<0.5, WatchAccuracy, Patience<2>>>);
  NAMED("CudaGraph<WholeStep, NoCapture>", CudaGraph<NoCapture, WholeStep>);
}

TEST_CASE("policies with other arguments have other names") {
  CHECK(saved_name<ClipNorm<0.5>>() != saved_name<ClipNorm<0.25>>());
  CHECK(saved_name<Watch<"a", Better::lower>>() != saved_name<Watch<"a", Better::higher>>());
  CHECK(saved_name<Watch<"a", Better::lower>>() != saved_name<Watch<"b", Better::lower>>());
  CHECK(saved_name<Schedule<Warmup<10>>>() != saved_name<Schedule<Warmup<20>>>());
  CHECK(saved_name<Odd<int, float, 1>>() != saved_name<Odd<int, float, 2>>());
}

TEST_CASE("a slot has the name of its policy") {
  auto const slots = frugal::detail::slots_of(list<Accumulate<2>, ClipNorm<0.5>>{}, {});
  REQUIRE(slots.size() == 2);
  CHECK(slots.at("Accumulate") == "Accumulate<2>");
  CHECK(slots.at("Clip") == "ClipNorm<1/2>");
}

TEST_CASE("known differences in compilers' spelling are removed from the names that they spell") {
  CHECK(portable_name("frugal::Accumulate<8ul>") == "Accumulate<8>");
  CHECK(portable_name("frugal::Accumulate< 8>") == "Accumulate<8>");
  CHECK(portable_name("frugal::Every<frugal::Automatic()>") == "Every<Auto>");
}

}  // namespace frugal_test::checkpoint_saved_name

namespace frugal_test::policy_checkpoint_changed_recipe {

using namespace support;
using namespace support::dying_runs;
using frugal::ChangedRecipe;
using frugal::Every;
using frugal::Patience;
using Adam = frugal::Optimize<frugal::AdamW>;
using Saves = frugal::Checkpoint<Every<4>>;
using Words = std::vector<std::string>;
// None of these changes a bit of what is trained.
using Patient = frugal::Schedule<frugal::Plateau<0.5, Patience<100>>>;
using MorePatient = frugal::Schedule<frugal::Plateau<0.5, Patience<200>>>;
using Stop = frugal::EarlyStop<Patience<100>>;

Saves keeps(std::vector<std::string> start_fresh = {}) {
  return {.changed_recipe = ChangedRecipe::KeepWhatFits, .start_fresh = std::move(start_fresh)};
}

Words changed(Outcome const& outcome) {
  REQUIRE(outcome.report.resumed);
  return outcome.report.resumed->changed;
}

/// The error of a start.
template <class... Ps>
frugal::Fault refusal(Job const& job, Ps const&... policies) {
  try {
    run(job, policies...);
  } catch (frugal::StateError const& error) {
    return error.fault();
  }
  return {.what = "nothing was refused", .where = "", .why = "", .fix = ""};
}

TEST_CASE("a checkpoint of another recipe is refused, and the error names what would keep it") {
  TemporaryFolder const folder;
  Job const job{.folder = folder.path(), .epochs = 1};
  run(job, Adam{}, Saves{});
  frugal::Fault const clip = refusal(job, Adam{}, frugal::ClipValue<1000>{}, Saves{});
  CHECK(clip.why == "Clip is NoClip there and ClipValue<1000> here");
  CHECK(clip.fix.find("ChangedRecipe::KeepWhatFits") != std::string::npos);
  frugal::Fault const stop = refusal(job, Adam{}, Stop{}, Saves{});
  CHECK(stop.why == "'policies/EarlyStop/best': it was not saved");
  CHECK(stop.fix.find("ChangedRecipe::KeepWhatFits") != std::string::npos);
}

TEST_CASE("told to, it keeps what fits: changes that do nothing leave the run its bits") {
  TemporaryFolder const folder;
  Job job{.folder = folder / "whole"};
  Outcome const whole = run(job, Adam{}, Saves{});
  job = {.folder = folder / "changed", .dies_at = 10};
  run(job, Adam{}, Patient{}, frugal::ClipValue<1000>{}, frugal::Log<>{}, Saves{});
  job.dies_at = 9;
  Outcome const second =
      run(job, Adam{}, frugal::ClipValue<2000>{}, Stop{}, frugal::Log<>{}, keeps());
  REQUIRE(second.died);

  // What differs is told by every start until one has saved.
  auto const line = [&] {
    for (std::string const& each : lines_of(text_of(job.folder / "metrics.jsonl"))) {
      auto const json = nlohmann::json::parse(each);
      if (json.at("event") == "resume" && json.contains("changed")) {
        return json.at("changed").get<std::string>();
      }
    }
    return std::string();
  }();
  CHECK(line ==
        "Clip was ClipValue<1000> and is ClipValue<2000>; Schedule was "
        "Schedule<Plateau<1/2, Patience<100>, Watch<'loss', 0>>> and is Schedule<>; "
        "EarlyStop is new and starts fresh; Schedule has no state any more");

  job.dies_at = 0;
  Outcome const last =
      run(job, Adam{}, frugal::ClipValue<2000>{}, Stop{}, frugal::Log<>{}, keeps());
  CHECK(changed(last).empty());
  CHECK(advises(last.report,
                "the checkpoint has another recipe; this run keeps what fits: Clip was"));
  CHECK(same_bits(last.tensors, whole.tensors));
}

TEST_CASE("an unchanged recipe reports no difference") {
  TemporaryFolder const folder;
  Job job{.folder = folder.path(), .dies_at = 10};
  auto const start = [&] {
    return run(job, Adam{}, Patient{}, Stop{}, frugal::Rollback<Every<3>>{}, frugal::Log<>{},
               keeps({"Schedule", "EarlyStop"}));
  };
  start();
  job.dies_at = 0;
  Outcome const resumed = start();
  CHECK(changed(resumed).empty());
  CHECK(resumed.report.warnings.empty());
  job.folder = folder / "whole";
  CHECK(same_bits(resumed.tensors, start().tensors));
}

TEST_CASE("a policy that is gone takes its state with it, and its end of the run") {
  TemporaryFolder const folder;
  Job const job{.folder = folder.path()};
  Outcome const first = run(job, Adam{}, frugal::EarlyStop<Patience<1>>{.min_delta = 10}, Saves{});
  REQUIRE(first.report.stopped_by == "EarlyStop");
  REQUIRE(first.report.steps < 33);
  Outcome const second = run(job, Adam{}, keeps());
  CHECK(changed(second) == Words{"EarlyStop is gone, and so is its state"});
  CHECK(second.report.stopped_by.empty());
  CHECK(second.report.steps == 33);
}

TEST_CASE("a slot of another type keeps a state of the same layout, unless it is to start fresh") {
  TemporaryFolder const folder;
  Job job{.folder = folder.path(), .dies_at = 26};
  run(job, Adam{}, Patient{}, Saves{});
  auto const saved = [&](std::string const& name) {
    auto const file = newest_in(folder.path()) / "state.json";
    return nlohmann::json::parse(text_of(file)).at("values").at("policies/Schedule/" + name);
  };
  REQUIRE_FALSE(saved("best").is_null());
  job.dies_at = 1;
  Words const was{
      "Schedule was Schedule<Plateau<1/2, Patience<100>, Watch<'loss', 0>>> and is "
      "Schedule<Plateau<1/2, Patience<200>, Watch<'loss', 0>>>"};
  Words kept;
  Words fresh;
  job.dies_at = 0;
  job.epochs = 2;  // it is over, and nothing is trained
  kept = changed(run(job, Adam{}, MorePatient{}, keeps()));
  CHECK(kept == was);
  fresh = changed(run(job, Adam{}, MorePatient{}, keeps({"Schedule"})));
  REQUIRE(fresh.size() == 2);
  CHECK(fresh[1] == "the state of Schedule starts fresh");
}

/// Keeps how many steps it has heard of, under one of two names.
template <bool Renamed>
struct Counts {
  using kind = support::kinds::spy;
  using listens = frugal::list<frugal::on::step>;
  frugal::Outcome<std::uint64_t> steps{};
  class State {
   public:
    explicit State(Counts const& settings) : out_(&settings.steps) {}
    void on_step(frugal::Step&) { out_->set(++steps_); }
    template <class Archive>
    void persist(Archive& archive) {
      archive("steps", steps_);
      archive(Renamed ? "after" : "before", more_);
    }

   private:
    std::uint64_t steps_ = 0;
    bool more_ = true;
    frugal::Outcome<std::uint64_t> const* out_;
  };
};

TEST_CASE("a state that does not fit is refused by its name, or starts fresh, once") {
  TemporaryFolder const folder;
  Job job{.folder = folder.path(), .dies_at = 10};
  run(job, Adam{}, Counts<false>{}, Saves{});
  frugal::Fault const fault = refusal(job, Adam{}, Counts<true>{}, keeps());
  CHECK(fault.why == "'policies/test.Spy/after': it was not saved");
  CHECK(fault.fix.find("Name \"test.Spy\" in Checkpoint::start_fresh") == 0);

  auto const start = [&](std::uint64_t epochs) {
    auto const module = std::make_shared<Mlp>(job.shape);
    frugal::Trainer trainer{
        module,
        frugal::CrossEntropy{},
        frugal::Settings{.run_dir = job.folder, .epochs = epochs, .seed = job.seed},
        Adam{},
        Counts<true>{},
        keeps({"test.Spy"})};
    frugal::TensorDataset train(samples(43), {.batch = 4, .shuffle = true});
    frugal::TensorDataset valid(samples(15, 92), {.batch = 4});
    auto const report = trainer.fit(train, valid);
    REQUIRE(report.resumed);
    return std::pair(report.resumed->changed,
                     *trainer.template policy<support::kinds::spy>().steps.get());
  };
  auto const [first, counted] = start(1);
  CHECK(first == Words{"the state of test.Spy starts fresh"});
  CHECK(counted == 3);  // from step 8 on, and not from what was loaded before it did not fit
  auto const [second, all] = start(2);
  CHECK(second.empty());
  CHECK(all == 3 + 11);
}

TEST_CASE("model and optimizer must match all the same") {
  TemporaryFolder const folder;
  Job const job{.folder = folder.path(), .epochs = 1};
  run(job, Adam{}, Saves{});
  frugal::Fault const optimizer = refusal(job, frugal::Optimize<frugal::SGD>{}, keeps());
  CHECK(optimizer.why == "Optimize is Optimize<AdamW> there and Optimize<SGD> here");
  CHECK(optimizer.fix.find("KeepWhatFits") == std::string::npos);
  Job other = job;
  other.shape.hidden = 9;
  CHECK(refusal(other, Adam{}, keeps()).why ==
        "'first.weight' is F32 [8, 6] there and F32 [9, 6] here");
  other = job;
  other.seed = 8;
  CHECK(refusal(other, Adam{}, keeps()).why == "its seed is 7, and here it is 8");
}

TEST_CASE("settings that mean nothing are refused") {
  TemporaryFolder const folder;
  Job const job{.folder = folder.path(), .epochs = 1};
  CHECK_THROWS_WITH_AS(run(job, Adam{}, keeps({"Optimize"})),
                       doctest::Contains("start_fresh names the optimizer"), frugal::SettingsError);
  CHECK_THROWS_WITH_AS(run(job, Adam{}, Saves{.start_fresh = {"Schedule"}}),
                       doctest::Contains("Set it to ChangedRecipe::KeepWhatFits"),
                       frugal::SettingsError);
}

/// Makes one loss of the start infinite.
struct Bad {
  std::uint64_t at;
  std::uint64_t* count;
  frugal::Loss operator()(std::shared_ptr<Mlp>& module, frugal::Batch const& batch) const {
    frugal::Loss loss = frugal::CrossEntropy{}(module, batch);
    if (module->is_training() && ++*count == at) loss.value = loss.value * std::nan("");
    return loss;
  }
};

TEST_CASE("Rollback does without the good state of another recipe, and keeps a new one") {
  TemporaryFolder const folder;
  Job job{.folder = folder.path(), .dies_at = 10};
  // The good state is of step 6, and is saved apart.
  run(job, Adam{}, frugal::Rollback<Every<6>>{}, Saves{});
  job.dies_at = 0;
  std::uint64_t count = 0;
  Outcome const resumed = run_with(job, Bad{.at = 2, .count = &count}, Adam{}, Stop{},
                                   frugal::Rollback<Every<6>>{}, keeps());
  CHECK(changed(resumed) == Words{"EarlyStop is new and starts fresh"});
  CHECK(advises(resumed.report, "back to step 8, that window is passed over"));
  CHECK(resumed.report.steps == 32);
}

}  // namespace frugal_test::policy_checkpoint_changed_recipe
