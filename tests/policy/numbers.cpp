// SPDX-License-Identifier: Apache-2.0
// left to clang: every policy's own test
#include <doctest/doctest.h>

#include <frugal/frugal.hpp>
#include <frugal/metrics.hpp>
#include <frugal/model.hpp>
#include <frugal/report.hpp>

#include "support/files.hpp"

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

// Structure in the type, numbers in members: a number of a policy's type is the default of a member.
// tests/tools/numbers_test.py holds the headers to the list here.
namespace frugal_test::policy_numbers {

using namespace frugal;

/// The smallest recipes that have a number, and the member that has it.
TEST_CASE("a number in a type is the default of a member") {
  CHECK(Accumulate<>{}.micro_batches == Accumulate<1>::micro_batches);

  CHECK(Validate<Every<7>>{}.every.count() == 7);
  CHECK(Validate<SanityBatches<5>>{}.sanity_batches == 5);
  CHECK(TopK<>{}.k == TopK<5>::k);
  CHECK(IgnoreIndex<255, Accuracy>{}.label == 255);
  CHECK(CalibrationError<30>{}.bins == 30);
  CHECK(EarlyStop<Patience<4>>{}.patience == 4);
  CHECK(EarlyStop<GraceEpochs<6>>{}.grace_epochs == 6);
  CHECK(Checkpoint<Keep<5>>{}.keep == 5);
  CHECK(Checkpoint<KeepEvery<40>>{}.keep_every == 40);
  CHECK(Checkpoint<KeepBest<WatchLoss, 2>, KeepBest<WatchAccuracy, 3>>{}.keep_best ==
        std::array<std::size_t, 2>{2, 3});
  CHECK(Spot<SigtermSave, Grace<90>>{}.grace == 90);
  CHECK(StartOn<Cpu, Steps<7>>{}.until == 7);
  CHECK(StopAfter<Hours<2>>{}.limit == std::chrono::hours(2));
  CHECK(Profile<Seconds<4>>{}.length == std::chrono::seconds(4));
  CHECK(DryRun<4>{}.batches == 4);
  CHECK(DevicePrefetch<Depth<3>>{}.depth == 3);
  CHECK(Recompute<Segments<6>>{}.segments == 6);
  CHECK(Budget<Usd<20>>{}.limit == 20);
  CHECK(Budget<KilowattHours<8>>{}.limit == 8);

  CHECK(ClipNorm<0.25>{}.max_norm == 0.25);
  CHECK(ClipValue<0.25>{}.max_value == 0.25);
  CHECK(ClipAdaptive<0.25>{}.share == 0.25);
  CHECK(Ema<0.75>{}.decay == 0.75);
  CHECK(Swa<From<9>>{}.from.count() == 9);

  CHECK(Constant<5, 0.5>{}.value == 0.5);
  CHECK(Warmup<30>{}.steps == 30);
  CHECK(Ramp<0.5, 0.25>{}.to == 0.25);
  CHECK(CosineDecay<0.1>{}.floor == 0.1);
  CHECK(CosineRestarts<20, 3>{}.first == 20);
  CHECK(PolynomialDecay<2>{}.power == 2);
  CHECK(StepDecay<11>{}.every == 11);
  CHECK(MultiStepDecay<0.5, 3, 8>{}.milestones == std::vector<std::uint64_t>{3, 8});
  CHECK(Plateau<0.2>{}.factor == 0.2);

  using Adapted = Lora<On<"a">, Rank<4>, Alpha<2.5>, AdapterDropout<0.25>>;
  CHECK(Adapted{}.rank == 4);
  CHECK(Adapted{}.alpha == 2.5);
  CHECK(Adapted{}.dropout == 0.25);
  CHECK(Lora<On<"a">>{.rank = 16}.settings().alpha == 16);  // without Alpha it is the rank
  CHECK(Prune<Magnitude, Sparsity<0.75>>{}.sparsity == 0.75);
  CHECK(Prune<Magnitude, Sparsity<0.75>, From<3>, Cubic<50>>{}.steps == 50);
  CHECK(Structured<KeepShare<0.75>, RoundTo<8>>{}.keep == 0.75);
  CHECK(Structured<KeepShare<0.75>, RoundTo<8>>{}.round_to == 8);
  CHECK(Distill<Temperature<2.5>>{}.temperature == 2.5);
  CHECK(LotteryTicket<Rewind<12>, Rounds<3>>{}.rewind == 12);
  CHECK(LotteryTicket<Rewind<12>, Rounds<3>>{}.rounds == 3);
}

TEST_CASE("a count of less than one is refused where it is given") {
  CHECK_THROWS_AS(Every<5>(0), SettingsError);
  CHECK_THROWS_AS((Every<5, Epoch>(-1)), SettingsError);
  CHECK_THROWS_AS(From<5>(-1), SettingsError);
  CHECK(From<5>(0).count() == 0);
}

TensorDataset data() {
  torch::manual_seed(3);
  at::Tensor const rows = torch::randn({48, 6});
  return TensorDataset(rows, rows.argmax(1).remainder(3), {.batch = 4});
}
torch::nn::Sequential net() {
  torch::manual_seed(4);
  return torch::nn::Sequential(torch::nn::Linear(6, 8), torch::nn::Tanh(), torch::nn::Linear(8, 8),
                               torch::nn::Tanh(), torch::nn::Linear(8, 3));
}

struct Outcome {
  std::vector<at::Tensor> weights;
  std::vector<std::uint64_t> validated_at;
  std::string stopped_by;
  std::size_t lines = 0;  ///< of the log
  std::size_t checkpoints = 0;
};

template <class... Ps>
Outcome train(std::filesystem::path const& folder, Ps const&... policies) {
  auto train = data();
  auto valid = data();
  auto module = net();
  Trainer trainer{module, CrossEntropy{}, Settings{.run_dir = folder, .epochs = 6, .seed = 5},
                  Optimize<AdamW>{.lr = 0.02}, policies...};
  Report const report = trainer.fit(train, valid);
  Outcome out{.weights = module->parameters(), .validated_at = {}, .stopped_by = report.stopped_by};
  for (Validation const& each : report.validations) out.validated_at.push_back(each.step);
  std::ifstream log(folder / "metrics.jsonl");
  for (std::string line; std::getline(log, line);) ++out.lines;
  for ([[maybe_unused]] auto const& each :
       std::filesystem::directory_iterator(folder / "checkpoints")) {
    ++out.checkpoints;
  }
  return out;
}

// Two recipes alone: each type of a trainer takes seconds to compile.
TEST_CASE("numbers in members train the bits of the same numbers in types") {
  support::TemporaryFolder const folder;
  Outcome const typed = train(
      folder.path() / "typed", Accumulate<2>{},
      Schedule<Warmup<3>, Constant<5>, StepDecay<4, 0.5>>{}, Validate<Every<3>>{},
      EarlyStop<Patience<2>, GraceEpochs<1>>{.min_delta = 0.02}, ClipNorm<0.3>{},
      Prune<Magnitude, Sparsity<0.5>, From<2>, Cubic<8>, Every<2>>{}, Recompute<Segments<2>>{},
      Log<Every<2>>{}, Checkpoint<Every<4>, Keep<2>, KeepBest<WatchLoss, 2>, KeepEvery<10>>{});

  Schedule<Warmup<9>, Constant<1>, StepDecay<90>> schedule;
  schedule.warmup().steps = 3;
  schedule.constant().steps = 5;
  schedule.step_decay().every = 4;
  schedule.step_decay().gamma = 0.5;
  Outcome const given = train(
      folder.path() / "given", Accumulate<>{.micro_batches = 2}, schedule,
      Validate<Every<100>>{.every = 3},
      EarlyStop<Patience<9>>{.patience = 2, .grace_epochs = 1, .min_delta = 0.02},
      ClipNorm<>{.max_norm = 0.3},
      Prune<Magnitude, Sparsity<0.9>, From<90>, Cubic<90>, Every<90>>{
          .sparsity = 0.5, .from = 2, .steps = 8, .every = 2},
      Recompute<>{.segments = 2}, Log<>{.every = 2},
      Checkpoint<Every<90>, KeepBest<>>{.every = 4, .keep = 2, .keep_every = 10, .keep_best = {2}});

  REQUIRE(typed.weights.size() == given.weights.size());
  for (std::size_t i = 0; i < typed.weights.size(); ++i) {
    CHECK(at::equal(typed.weights[i], given.weights[i]));
  }
  CHECK(typed.validated_at == given.validated_at);
  CHECK(typed.validated_at.front() == 3);
  CHECK(typed.stopped_by == given.stopped_by);
  CHECK(typed.lines == given.lines);
  CHECK(typed.checkpoints == given.checkpoints);
}

TEST_CASE("numbers that cannot be are refused before the first step") {
  auto const refused = [](auto const& policy) {
    support::TemporaryFolder const folder;
    auto train = data();
    Trainer trainer{net(), CrossEntropy{}, Settings{.run_dir = folder.path()}, Optimize<AdamW>{},
                    policy};
    CHECK_THROWS_AS(static_cast<void>(trainer.fit(train)), SettingsError);
  };
  refused(Accumulate<>{.micro_batches = 0});
  refused(Checkpoint<>{.keep = 0});
  refused(Checkpoint<KeepBest<>>{.keep_best = {0}});
  refused(Schedule<StepDecay<5>>{{StepDecay<5>{.every = 0}}});
  refused(Prune<Magnitude, Sparsity<0.5>>{.from = 3});  // the type says: with the run
  refused(Prune<Movement, Sparsity<0.5>, From<3>>{.from = 0});
  refused(DryRun<>{.batches = 0});
}

}  // namespace frugal_test::policy_numbers
