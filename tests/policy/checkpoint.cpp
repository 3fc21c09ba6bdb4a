// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <frugal/frugal.hpp>
#include <frugal/policy/checkpoint/weights.hpp>

#include "support/checkpoints.hpp"
#include "support/dying_runs.hpp"
#include "support/files.hpp"
#include "support/running.hpp"

#include <cstdint>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace frugal_test::policy_checkpoint {

using namespace support;
using namespace support::dying_runs;
using frugal::Async;
using frugal::Every;
using frugal::Keep;
using Optimizer = frugal::Optimize<frugal::AdamW>;

template <class... Ps>
void ends_in_the_same_bits(std::vector<std::uint64_t> const& deaths, Ps const&... policies) {
  TemporaryFolder const folder;
  Outcome const whole = run({.folder = folder / "whole"}, policies...);
  Outcome const resumed = run_to_the_end({.folder = folder / "killed"}, deaths, policies...);
  CHECK(same_bits(resumed.tensors, whole.tensors));
  CHECK(resumed.report.steps == whole.report.steps);
  CHECK(resumed.report.train_loss == whole.report.train_loss);
  CHECK(resumed.report.stopped_by == whole.report.stopped_by);
  REQUIRE(resumed.report.validations.size() == whole.report.validations.size());
  for (std::size_t i = 0; i < whole.report.validations.size(); ++i) {
    CHECK(resumed.report.validations[i].metrics == whole.report.validations[i].metrics);
  }
  // The last files are equal too, except for their times.
  for (char const* const file : {"model.safetensors", "optimizer.safetensors"}) {
    CHECK(text_of(newest_in(folder / "killed") / file) ==
          text_of(newest_in(folder / "whole") / file));
  }
}

TEST_CASE("a run that dies again and again ends with the bits of one that does not") {
  ends_in_the_same_bits({5, 9, 12}, Optimizer{}, frugal::Checkpoint<Every<4>>{});
}

TEST_CASE("so it does when a thread writes") {
  ends_in_the_same_bits({3, 9, 20}, Optimizer{}, frugal::Checkpoint<Every<4>, Async, Keep<2>>{});
}

TEST_CASE("so it does whatever the cadence counts") {
  ends_in_the_same_bits({14, 5}, Optimizer{}, frugal::Checkpoint<Every<1, frugal::Epoch>>{});
  ends_in_the_same_bits({14, 5}, Optimizer{}, frugal::Checkpoint<Every<13, frugal::Sample>>{});
  ends_in_the_same_bits({14, 5}, Optimizer{}, frugal::Checkpoint<Every<1, frugal::Second>>{});
  ends_in_the_same_bits({14, 5}, Optimizer{}, frugal::Checkpoint<>{});
}

TEST_CASE("so it does in the middle of windows, plateaus, patience and clipping") {
  ends_in_the_same_bits({7, 8, 16}, Optimizer{.lr = 0.05}, frugal::Accumulate<3>{},
                        frugal::Precision<frugal::BF16>{}, frugal::ClipNorm<0.5>{},
                        frugal::Schedule<frugal::Plateau<0.5, frugal::Patience<1>>>{},
                        frugal::Validate<Every<2>, frugal::Accuracy>{},
                        frugal::EarlyStop<frugal::Patience<4>>{}, frugal::Log<Every<2>>{},
                        frugal::DryRun<>{.out = nullptr}, frugal::Checkpoint<Every<3>, Async>{});
}

TEST_CASE("a run that dies before its first cadence restarts at its first step") {
  TemporaryFolder const folder;
  Job job{.folder = folder.path(), .dies_at = 2};
  CHECK(run(job, Optimizer{}, frugal::Checkpoint<Every<1000>>{}).died);
  job.dies_at = 0;
  Outcome const again = run(job, Optimizer{}, frugal::Checkpoint<Every<1000>>{});
  REQUIRE(again.report.resumed);
  CHECK(again.report.resumed->step == 0);
  CHECK(again.losses.size() == 33);
}

TEST_CASE("a completed run is at its end when it is started again, with the same report") {
  TemporaryFolder const folder;
  Job const job{.folder = folder.path()};
  Outcome const first = run(job, Optimizer{}, frugal::Checkpoint<Every<4>>{});
  Outcome const second = run(job, Optimizer{}, frugal::Checkpoint<Every<4>>{});
  CHECK(second.losses.empty());
  CHECK(second.report.steps == first.report.steps);
  CHECK(second.report.train_loss == first.report.train_loss);
  CHECK(second.report.validations.size() == first.report.validations.size());
  CHECK(same_bits(second.tensors, first.tensors));
}

TEST_CASE("a completed run continues with more epochs") {
  TemporaryFolder const folder;
  Job job{.folder = folder / "in two parts", .epochs = 2};
  run(job, Optimizer{}, frugal::Checkpoint<Every<4>>{});
  job.epochs = 3;
  Outcome const longer = run(job, Optimizer{}, frugal::Checkpoint<Every<4>>{});
  job.folder = folder / "in one";
  CHECK(same_bits(longer.tensors, run(job, Optimizer{}, frugal::Checkpoint<Every<4>>{}).tensors));
}

TEST_CASE("a run that EarlyStop has ended stays ended") {
  TemporaryFolder const folder;
  auto const start = [&] {
    return run({.folder = folder.path(), .epochs = 9}, Optimizer{},
               frugal::EarlyStop<frugal::Patience<1>>{.min_delta = 10},
               frugal::Checkpoint<Every<4>>{});
  };
  Outcome const first = start();
  REQUIRE(first.report.stopped_by == "EarlyStop");
  Outcome const second = start();
  CHECK(second.report.stopped_by == "EarlyStop");
  CHECK(second.losses.empty());
  // More epochs train nothing; more patience does, and the advice says so.
  CHECK(advises(second.report, "EarlyStop had stopped the run at step 22"));
  CHECK_FALSE(advises(second.report, "raise Settings::epochs"));
  Outcome const patient =
      run({.folder = folder.path(), .epochs = 9}, Optimizer{},
          frugal::EarlyStop<frugal::Patience<3>>{.min_delta = 10},
          frugal::Checkpoint<Every<4>>{.changed_recipe = frugal::ChangedRecipe::KeepWhatFits});
  CHECK(patient.report.stopped_by == "EarlyStop");
  CHECK(patient.report.steps == 44);
}

/// Throws in the validation of a step, once.
struct Refuses {
  using kind = support::kinds::spy;
  using listens = frugal::list<frugal::on::validated>;
  using after = frugal::list<frugal::kinds::early_stop>;  // which has counted by then
  bool* armed = nullptr;
  std::vector<std::uint64_t>* seen = nullptr;
  struct State {
    using transient = void;
    explicit State(Refuses const& settings) : armed(settings.armed), seen(settings.seen) {}
    void on_validated(frugal::Validated& phase) {
      if (phase.counters().step == 10 && std::exchange(*armed, false)) {
        throw std::runtime_error("the disk of the plots is full");
      }
      seen->push_back(phase.counters().step);
    }
    bool* armed;
    std::vector<std::uint64_t>* seen;
  };
};

TEST_CASE("a validation that a subscriber interrupts is neither repeated nor counted twice") {
  TemporaryFolder const folder;
  std::vector<std::uint64_t> seen;
  bool armed = false;
  auto const start = [&](std::string const& name) {
    return run({.folder = folder / name}, Optimizer{}, frugal::Validate<Every<5>>{},
               frugal::Schedule<frugal::Plateau<frugal::Rational{1, 2}, frugal::Patience<1>>>{},
               frugal::EarlyStop<frugal::Patience<4>>{.min_delta = 10},
               frugal::Checkpoint<Every<100>>{}, Refuses{.armed = &armed, .seen = &seen});
  };
  Outcome const whole = start("whole");
  REQUIRE(whole.report.stopped_by == "EarlyStop");
  auto const all = std::exchange(seen, {});
  armed = true;
  CHECK_THROWS_AS(start("interrupted"), std::runtime_error);
  Outcome const resumed = start("interrupted");
  CHECK(resumed.report.steps == whole.report.steps);
  CHECK(same_bits(resumed.tensors, whole.tensors));
  CHECK(resumed.report.validations.size() == whole.report.validations.size());
  CHECK(seen == all);
}

TEST_CASE("a checkpoint has the module's tensors by name, and no code") {
  TemporaryFolder const folder;
  Outcome const outcome =
      run({.folder = folder.path()}, Optimizer{}, frugal::Checkpoint<Every<4>>{});
  auto const checkpoint = newest_in(folder.path());
  auto const weights = frugal::Safetensors::open(checkpoint / "model.safetensors");
  CHECK(weights.size() == outcome.tensors.size());
  CHECK((weights.metadata("format") == std::string_view("pt")));
  for (auto const& [name, tensor] : outcome.tensors) {
    at::Tensor const saved = frugal::detail::tensor_in_file(weights.at(name));
    CHECK(saved.equal(tensor));
    CHECK((saved.scalar_type() == tensor.scalar_type()));
  }
  auto const optimizer = frugal::Safetensors::open(checkpoint / "optimizer.safetensors");
  CHECK(optimizer.find("policies/Optimize/first.weight/exp_avg_sq").has_value());
  CHECK(optimizer.find("generators/cpu").has_value());
  auto const state = nlohmann::json::parse(text_of(checkpoint / "state.json"));
  CHECK(state.at("recipe").at("Optimize") == "Optimize<AdamW>");
  CHECK(state.at("values").at("counters/step") == 33);
}

TEST_CASE("Keep, KeepEvery and KeepBest decide what stays") {
  TemporaryFolder const folder;
  run({.folder = folder / "keep"}, Optimizer{}, frugal::Checkpoint<Every<4>, Keep<2>>{});
  CHECK((steps_in(folder / "keep") == Steps{32, 33}));
  run({.folder = folder / "every"}, Optimizer{},
      frugal::Checkpoint<Every<4>, Keep<1>, frugal::KeepEvery<12>>{});
  CHECK((steps_in(folder / "every") == Steps{12, 24, 33}));
}

TEST_CASE("each multiple of KeepEvery is saved, whatever the cadence") {
  TemporaryFolder const folder;
  auto const kept = [&](std::string const& name, auto const& saves) {
    run({.folder = folder / name}, Optimizer{}, saves);
    return steps_in(folder / name);
  };
  using frugal::Checkpoint;
  using frugal::KeepEvery;
  CHECK((kept("steps", Checkpoint<Every<5>, Keep<1>, KeepEvery<12>>{}) == Steps{12, 24, 33}));
  CHECK((kept("default", Checkpoint<Keep<1>, KeepEvery<16>>{}) == Steps{16, 32, 33}));
  // Also at the end of an epoch, where the cadence is due as well.
  CHECK((kept("epochs", Checkpoint<Every<2, frugal::Epoch>, Keep<1>, KeepEvery<11>>{}) ==
         Steps{11, 22, 33}));
  CHECK((kept("samples", Checkpoint<Every<1000, frugal::Sample>, Keep<1>, KeepEvery<20>>{}) ==
         Steps{20, 33}));
}

TEST_CASE("KeepBest saves each improvement when it is measured, and keeps the best") {
  TemporaryFolder const folder;
  Outcome const outcome = run({.folder = folder.path(), .epochs = 4}, Optimizer{.lr = 0.3},
                              frugal::Validate<Every<5>>{},
                              frugal::Checkpoint<Every<1000>, frugal::KeepBest<>, Keep<1>>{});
  double best = 1e9;
  std::uint64_t best_step = 0;
  for (frugal::Validation const& each : outcome.report.validations) {
    if (each.metrics["loss"] >= best) continue;
    best = each.metrics["loss"];
    best_step = each.step;
  }
  REQUIRE(best_step < 44);
  CHECK((steps_in(folder.path()) == Steps{best_step, 44}));
  auto const kept = frugal::RunDirectory(folder.path(), frugal::Access::read).list().whole.back();
  CHECK(kept.manifest.metrics.at("loss") == best);
}

TEST_CASE("an improvement that the cadence saves is saved once, and counts once in Keep") {
  TemporaryFolder const folder;
  // Each epoch's end improves the loss, and its cadence is due there as well.
  run({.folder = folder / "epochs", .epochs = 4}, Optimizer{},
      frugal::Validate<Every<1, frugal::Epoch>>{},
      frugal::Checkpoint<Every<1, frugal::Epoch>, frugal::KeepBest<>, Keep<4>>{});
  CHECK((steps_in(folder / "epochs") == Steps{11, 22, 33, 44}));
  run({.folder = folder / "steps", .epochs = 1}, Optimizer{}, frugal::Validate<Every<3>>{},
      frugal::Checkpoint<Every<3>, frugal::KeepBest<>, Keep<9>>{});
  CHECK((steps_in(folder / "steps") == Steps{0, 3, 6, 9, 11}));
}

TEST_CASE("the best before a resume is the best after it") {
  TemporaryFolder const folder;
  auto const start = [&](std::string const& name, std::vector<std::uint64_t> const& deaths) {
    run_to_the_end({.folder = folder / name, .epochs = 4}, deaths, Optimizer{.lr = 0.3},
                   frugal::Validate<Every<5>>{},
                   frugal::Checkpoint<Every<7>, frugal::KeepBest<>, Keep<1>>{});
    return steps_in(folder / name);
  };
  CHECK(start("killed", {9, 13}) == start("whole", {}));
}

}  // namespace frugal_test::policy_checkpoint
