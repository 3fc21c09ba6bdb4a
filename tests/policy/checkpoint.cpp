// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <frugal/frugal.hpp>

#include "support/checkpoints.hpp"
#include "support/files.hpp"
#include "support/running.hpp"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace frugal_test::policy_checkpoint {

using namespace support;
using frugal::Async;
using frugal::Every;
using frugal::Keep;
using frugal::OnFailure;
using frugal::SavedCheckpoint;
using Optimizer = frugal::Optimize<frugal::AdamW>;

using Weights = frugal::Checkpoint<Every<1000>>;

/// What a machine that goes without a word looks like to fit.
struct Gone {};

/// Sees every loss; ends the run, as a kill would, before the backward pass of one micro-batch.
struct Witness {
  std::vector<double>* losses = nullptr;
  std::uint64_t dies_at = 0;  ///< micro-batches; 0: never

  frugal::Loss operator()(std::shared_ptr<Mlp>& module, frugal::Batch const& batch) const {
    frugal::Loss loss = frugal::CrossEntropy{}(module, batch);
    if (!module->is_training()) return loss;
    losses->push_back(loss.value.template item<double>());
    if (losses->size() == dies_at) throw Gone{};
    return loss;
  }
};

struct Job {
  std::filesystem::path folder;
  std::uint64_t epochs = 3;
  std::uint64_t seed = 7;
  std::uint64_t dies_at = 0;  ///< micro-batches of this start
  Mlp::Shape shape{.dropout = 0.3, .norm = true};
};

struct Outcome {
  bool died = false;
  frugal::Report report;
  std::map<std::string, at::Tensor> tensors;
  std::vector<double> losses;
};

/// Three epochs of 11 batches (the last ragged), shuffled, with dropout and normalisation.
template <class... Ps>
Outcome run(Job const& job, Ps const&... policies) {
  Outcome outcome;
  auto const module = std::make_shared<Mlp>(job.shape);
  frugal::Trainer trainer{
      module, Witness{.losses = &outcome.losses, .dies_at = job.dies_at},
      frugal::Settings{.run = job.folder, .epochs = job.epochs, .seed = job.seed}, policies...};
  frugal::Resident train(samples(43), {.batch = 4, .shuffle = true});
  frugal::Resident valid(samples(15, 92), {.batch = 4});
  try {
    outcome.report = trainer.fit(train, valid);
  } catch (Gone const&) {
    outcome.died = true;
  }
  outcome.tensors = tensors_of(*module);
  return outcome;
}

/// Starts again until the run ends, dying after so many micro-batches each time.
template <class... Ps>
Outcome run_to_the_end(Job job, std::vector<std::uint64_t> const& deaths, Ps const&... policies) {
  for (std::uint64_t const death : deaths) {
    job.dies_at = death;
    CHECK(run(job, policies...).died);
  }
  job.dies_at = 0;
  return run(job, policies...);
}

using Steps = std::vector<std::uint64_t>;

Steps steps_in(std::filesystem::path const& folder) {
  Steps steps;
  for (auto const& each : frugal::RunDirectory(folder, frugal::Access::read).list().whole) {
    steps.push_back(each.step());
  }
  std::sort(steps.begin(), steps.end());
  return steps;
}

std::filesystem::path newest_in(std::filesystem::path const& folder) {
  return frugal::RunDirectory(folder, frugal::Access::read).newest_valid().checkpoint->folder;
}

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
  // The last files agree too, but for when they were written.
  for (char const* const file : {"model.safetensors", "optimizer.safetensors"}) {
    CHECK(text_of(newest_in(folder / "killed") / file) ==
          text_of(newest_in(folder / "whole") / file));
  }
}

TEST_CASE("a run that dies again and again ends in the bits of one that does not") {
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
  using namespace frugal::literals;
  ends_in_the_same_bits({7, 8, 16}, Optimizer{.lr = 0.05}, frugal::Accumulate<3>{},
                        frugal::Precision<frugal::BF16>{}, frugal::ClipNorm<0.5_r>{},
                        frugal::Schedule<frugal::Plateau<0.5_r, frugal::Patience<1>>>{},
                        frugal::Validate<Every<2>, frugal::Accuracy>{},
                        frugal::EarlyStop<frugal::Patience<4>>{}, frugal::Log<Every<2>>{},
                        frugal::Smoke<>{.out = nullptr}, frugal::Checkpoint<Every<3>, Async>{});
}

TEST_CASE("a run that dies before its first cadence begins again at its first step") {
  TemporaryFolder const folder;
  Job job{.folder = folder.path(), .dies_at = 2};
  CHECK(run(job, Optimizer{}, frugal::Checkpoint<Every<1000>>{}).died);
  job.dies_at = 0;
  Outcome const again = run(job, Optimizer{}, frugal::Checkpoint<Every<1000>>{});
  REQUIRE(again.report.resumed);
  CHECK(again.report.resumed->step == 0);
  CHECK(again.losses.size() == 33);
}

TEST_CASE("a run that had ended is at its end when it is started again, with the same report") {
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

TEST_CASE("a run that had ended goes on when it is given more epochs") {
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
}

TEST_CASE("a checkpoint has the module's tensors by their names, and no code") {
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

TEST_CASE("Keep, KeepEvery and KeepBest say what stays") {
  TemporaryFolder const folder;
  run({.folder = folder / "keep"}, Optimizer{}, frugal::Checkpoint<Every<4>, Keep<2>>{});
  CHECK((steps_in(folder / "keep") == Steps{32, 33}));
  run({.folder = folder / "every"}, Optimizer{},
      frugal::Checkpoint<Every<4>, Keep<1>, frugal::KeepEvery<12>>{});
  CHECK((steps_in(folder / "every") == Steps{12, 24, 33}));
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

TEST_CASE("what was best before a resume is best after it") {
  TemporaryFolder const folder;
  auto const start = [&](std::string const& name, std::vector<std::uint64_t> const& deaths) {
    run_to_the_end({.folder = folder / name, .epochs = 4}, deaths, Optimizer{.lr = 0.3},
                   frugal::Validate<Every<5>>{},
                   frugal::Checkpoint<Every<7>, frugal::KeepBest<>, Keep<1>>{});
    return steps_in(folder / name);
  };
  CHECK(start("killed", {9, 13}) == start("whole", {}));
}

TEST_CASE("a damaged checkpoint is reported, and the one before it is used") {
  TemporaryFolder const folder;
  Job job{.folder = folder.path(), .dies_at = 20};
  run(job, Optimizer{}, frugal::Checkpoint<Every<4>>{});
  flip_bit(newest_in(folder.path()) / "optimizer.safetensors", 8000);
  job.dies_at = 0;
  Outcome const outcome = run(job, Optimizer{}, frugal::Checkpoint<Every<4>>{});
  REQUIRE(outcome.report.resumed);
  CHECK(outcome.report.resumed->step == 12);
  REQUIRE(outcome.report.resumed->damaged.size() == 1);
  CHECK(outcome.report.resumed->damaged[0].find("step-00000016") != std::string::npos);
  job.folder = folder / "whole";
  CHECK(same_bits(outcome.tensors, run(job, Optimizer{}, frugal::Checkpoint<Every<4>>{}).tensors));
}

TEST_CASE("a run without a whole checkpoint begins anew, and says why") {
  TemporaryFolder const folder;
  Job job{.folder = folder.path(), .dies_at = 3};
  run(job, Optimizer{}, frugal::Checkpoint<Every<100>>{});
  std::filesystem::remove(newest_in(folder.path()) / "state.json");
  job.dies_at = 0;
  Outcome const outcome = run(job, Optimizer{}, frugal::Checkpoint<Every<100>>{});
  CHECK_FALSE(outcome.report.resumed);
  CHECK(outcome.losses.size() == 33);
  bool told = false;
  for (auto const& advice : outcome.report.advice) {
    told = told || (advice.find("damaged") != std::string::npos &&
                    advice.find("state.json") != std::string::npos);
  }
  CHECK(told);
}

/// The error of a second start with something changed; its module is as it was made.
template <class... Ps>
std::string refusal(Job const& job, Ps const&... policies) {
  auto const module = std::make_shared<Mlp>(job.shape);
  auto const before = tensors_of(*module);
  std::vector<double> losses;
  frugal::Trainer trainer{
      module, Witness{.losses = &losses},
      frugal::Settings{.run = job.folder, .epochs = job.epochs, .seed = job.seed}, policies...};
  frugal::Resident train(samples(43, 91, job.shape.features), {.batch = 4});
  try {
    trainer.fit(train, train);
  } catch (frugal::StateError const& error) {
    CHECK(same_bits(tensors_of(*module), before));
    CHECK(losses.empty());
    CHECK(error.fault().where.find(job.folder.string()) == 0);
    CHECK(error.fault().mend.find("Resume::Weights") != std::string::npos);
    return error.fault().why;
  }
  return "nothing was refused";
}

TEST_CASE("a checkpoint of another run is refused with the first difference named") {
  TemporaryFolder const folder;
  Job const job{.folder = folder.path(), .epochs = 1};
  frugal::Checkpoint<Every<4>> const saves;
  run(job, Optimizer{}, frugal::Accumulate<2>{}, saves);

  Job other = job;
  other.seed = 8;
  CHECK(refusal(other, Optimizer{}, frugal::Accumulate<2>{}, saves) ==
        "its seed is 7, and here it is 8");
  CHECK(refusal(job, frugal::Optimize<frugal::SGD>{}, frugal::Accumulate<2>{}, saves) ==
        "Optimize is Optimize<AdamW> there and Optimize<SGD> here");
  CHECK(refusal(job, Optimizer{}, frugal::Accumulate<4>{}, saves) ==
        "Accumulate is Accumulate<2> there and Accumulate<4> here");
  other = job;
  other.shape.hidden = 9;
  CHECK(refusal(other, Optimizer{}, frugal::Accumulate<2>{}, saves) ==
        "'first.weight' is F32 [8, 6] there and F32 [9, 6] here");
  other = job;
  other.shape.norm = false;
  CHECK(refusal(other, Optimizer{}, frugal::Accumulate<2>{}, saves) ==
        "it has a tensor 'norm.num_batches_tracked', and this module has none");
  CHECK(refusal(job, Optimizer{}, frugal::Accumulate<2>{}, saves,
                frugal::EarlyStop<frugal::Patience<3>>{}) ==
        "'policies/EarlyStop/best': it was not saved");
}

TEST_CASE("a checkpoint with the state of a policy that is gone is refused") {
  TemporaryFolder const folder;
  Job const job{.folder = folder.path(), .epochs = 1};
  run(job, Optimizer{}, frugal::EarlyStop<frugal::Patience<3>>{}, frugal::Checkpoint<Every<4>>{});
  CHECK(refusal(job, Optimizer{}, frugal::Checkpoint<Every<4>>{}) ==
        "it has 'policies/EarlyStop/best', for which this recipe has no place");
}

TEST_CASE("observers that only show may come and go between two starts") {
  TemporaryFolder const folder;
  Job job{.folder = folder.path(), .dies_at = 10};
  run(job, Optimizer{}, frugal::Checkpoint<Every<4>>{});
  job.dies_at = 9;
  run(job, Optimizer{}, frugal::Log<>{}, frugal::Progress<>{.out = nullptr},
      frugal::Checkpoint<Every<4>>{});
  job.dies_at = 0;
  Outcome const last = run(job, Optimizer{}, frugal::Checkpoint<Every<4>>{});
  REQUIRE(last.report.resumed);
  CHECK(last.report.resumed->step == 16);
}

TEST_CASE("a start that is refused writes nothing into the log of the run that is there") {
  TemporaryFolder const folder;
  frugal::RunDirectory const first(folder.path());
  CHECK_THROWS_AS(
      run({.folder = folder.path()}, Optimizer{}, frugal::Log<>{}, frugal::Checkpoint<Every<4>>{}),
      frugal::LockError);
  CHECK(text_of(folder / "metrics.jsonl").empty());
}

TEST_CASE("weights of which no name fits are refused") {
  TemporaryFolder const folder;
  torch::nn::Linear linear(6, 3);
  frugal::Trainer trainer{linear, frugal::CrossEntropy{},
                          frugal::Settings{.run = folder / "donor", .epochs = 1}, Optimizer{},
                          Weights{}};
  frugal::Resident train(samples(8), {.batch = 4});
  trainer.fit(train);
  CHECK_THROWS_WITH_AS(run({.folder = folder / "run"}, Optimizer{},
                           Weights{.resume = frugal::Resume::Weights, .from = folder / "donor"}),
                       doctest::Contains("no name of a tensor there is one of a tensor here"),
                       frugal::StateError);
}

TEST_CASE("a checkpoint of other dtypes is refused") {
  TemporaryFolder const folder;
  auto const start = [&](at::ScalarType type) {
    auto const module = std::make_shared<Mlp>();
    module->to(type);
    frugal::Trainer trainer{module, frugal::CrossEntropy{},
                            frugal::Settings{.run = folder.path(), .epochs = 1}, Optimizer{},
                            frugal::Checkpoint<Every<4>>{}};
    frugal::Batch data = samples(8);
    data.data = data.data.to(type);
    frugal::Resident train(data, {.batch = 4});
    return trainer.fit(train);
  };
  start(at::kFloat);
  CHECK_THROWS_WITH_AS(start(at::kDouble),
                       doctest::Contains("'first.weight' is F32 [8, 6] there and F64 [8, 6] here"),
                       frugal::StateError);
}

TEST_CASE("a state of a newer version is refused, not passed over") {
  TemporaryFolder const folder;
  Job const job{.folder = folder.path(), .epochs = 1};
  run(job, Optimizer{}, frugal::Checkpoint<Every<4>>{});
  {
    // As a newer library would have written it: whole, by its manifest.
    frugal::RunDirectory directory(folder.path());
    auto const from = directory.newest_valid().checkpoint->folder;
    auto state = nlohmann::json::parse(text_of(from / "state.json"));
    state["version"] = 2;
    std::string const text = state.dump();
    frugal::CheckpointWriter writer = directory.begin(99);
    for (std::string const name : {"model.safetensors", "optimizer.safetensors"}) {
      std::string const bytes = text_of(from / name);
      writer.add(name, [&](auto& sink) { sink.write(bytes_of(bytes)); });
    }
    writer.add("state.json", [&](auto& sink) { sink.write(bytes_of(text)); });
    directory.commit(writer);
  }
  CHECK_THROWS_AS(run(job, Optimizer{}, frugal::Checkpoint<Every<4>>{}), frugal::NewerFormatError);
}

TEST_CASE("Resume::Weights takes the weights alone and begins at step 0") {
  TemporaryFolder const folder;
  Outcome const donor = run({.folder = folder / "donor"}, Optimizer{}, Weights{});
  std::vector<std::filesystem::path> const sources{
      folder / "donor", newest_in(folder / "donor"),
      newest_in(folder / "donor") / "model.safetensors"};
  int number = 0;
  for (auto const& from : sources) {
    CAPTURE(from);
    Job const job{.folder = folder / std::to_string(number++), .seed = 3, .dies_at = 1};
    Outcome const begun = run(job, frugal::Optimize<frugal::SGD>{},
                              Weights{.resume = frugal::Resume::Weights, .from = from});
    CHECK(begun.died);
    at::Tensor const norm = begun.tensors.at("norm.weight");
    CHECK(same_bits({{"weight", begun.tensors.at("first.weight")}},
                    {{"weight", donor.tensors.at("first.weight")}}));
    CHECK(norm.equal(donor.tensors.at("norm.weight")));
    CHECK((steps_in(job.folder) == Steps{0}));
  }
}

TEST_CASE("a run that began with another's weights goes on with its own") {
  TemporaryFolder const folder;
  run({.folder = folder / "donor"}, Optimizer{}, Weights{});
  frugal::Checkpoint<Every<4>> const saves{.resume = frugal::Resume::Weights,
                                           .from = folder / "donor"};
  Outcome const whole = run({.folder = folder / "whole", .seed = 3}, Optimizer{}, saves);
  Outcome const resumed =
      run_to_the_end({.folder = folder / "killed", .seed = 3}, {6, 7}, Optimizer{}, saves);
  CHECK(resumed.report.resumed);
  CHECK(same_bits(resumed.tensors, whole.tensors));
}

TEST_CASE("weights without a match are listed, and those that fit are taken") {
  TemporaryFolder const folder;
  Job job{.folder = folder / "donor", .epochs = 1};
  Outcome const donor = run(job, Optimizer{}, Weights{});
  job.folder = folder / "other";
  job.shape.norm = false;
  Outcome const other =
      run(job, Optimizer{}, Weights{.resume = frugal::Resume::Weights, .from = folder / "donor"});
  bool listed = false;
  for (auto const& advice : other.report.advice) {
    listed = listed || advice.find("'norm.weight' is not in the module") != std::string::npos;
  }
  CHECK(listed);
  job.folder = folder / "third";
  job.shape = {.hidden = 9};
  CHECK_THROWS_WITH_AS(
      run(job, Optimizer{}, Weights{.resume = frugal::Resume::Weights, .from = folder / "donor"}),
      doctest::Contains("'first.weight' does not fit F32 [9, 6]"), frugal::StateError);
}

TEST_CASE("Resume::Weights from a folder without a checkpoint is an error") {
  TemporaryFolder const folder;
  std::filesystem::create_directories(folder / "empty");
  CHECK_THROWS_WITH_AS(run({.folder = folder / "run"}, Optimizer{},
                           Weights{.resume = frugal::Resume::Weights, .from = folder / "empty"}),
                       doctest::Contains("it has no checkpoint that is whole"), frugal::StoreError);
}

TEST_CASE("Resume::Never begins at step 0 beside what is there, and its saves are the newest") {
  TemporaryFolder const folder;
  Job job{.folder = folder.path()};
  run(job, Optimizer{}, frugal::Checkpoint<Every<4>>{});
  job.dies_at = 10;
  frugal::Checkpoint<Every<4>> const never{.resume = frugal::Resume::Never};
  CHECK(run(job, Optimizer{}, never).died);
  job.dies_at = 0;
  Outcome const outcome = run(job, Optimizer{}, frugal::Checkpoint<Every<4>>{});
  REQUIRE(outcome.report.resumed);
  CHECK(outcome.report.resumed->step == 8);
}

TEST_CASE("HalfStorage writes weights of half the size, and resumes from them rounded") {
  TemporaryFolder const folder;
  Job job{.folder = folder.path(), .dies_at = 10};
  using Half = frugal::Checkpoint<Every<4>, frugal::HalfStorage>;
  run(job, Optimizer{}, Half{});
  auto const file = newest_in(folder.path()) / "model.safetensors";
  CHECK((frugal::Safetensors::open(file).at("first.weight").dtype == frugal::Dtype::bf16));
  CHECK(
      (frugal::Safetensors::open(file).at("norm.num_batches_tracked").dtype == frugal::Dtype::i64));
  job.dies_at = 1;
  Outcome const begun = run(job, Optimizer{}, Half{});
  at::Tensor const weight = begun.tensors.at("first.weight");
  CHECK((weight.scalar_type() == at::kFloat));
  CHECK(weight.equal(weight.to(at::kBFloat16).to(at::kFloat)));
  job.dies_at = 0;
  auto const advice = run(job, Optimizer{}, frugal::Checkpoint<Every<4>>{}).report.advice;
  REQUIRE_FALSE(advice.empty());
  CHECK(advice.back().find("stored as BF16") != std::string::npos);
}

TEST_CASE("weights that FP16 cannot hold are refused, naming the tensor") {
  TemporaryFolder const folder;
  auto const module = std::make_shared<Mlp>();
  {
    at::NoGradGuard const no_gradients;
    module->second->weight.fill_(70000);
  }
  frugal::Trainer trainer{module, frugal::CrossEntropy{},
                          frugal::Settings{.run = folder.path(), .epochs = 1}, Optimizer{},
                          frugal::Checkpoint<Every<4>, frugal::WeightsIn<at::kHalf>>{}};
  frugal::Resident train(samples(8), {.batch = 4});
  CHECK_THROWS_WITH_AS(trainer.fit(train), doctest::Contains("tensor 'second.weight', step 0"),
                       frugal::StoreError);
}

/// Takes the folder of checkpoints away in the middle of a run, and gives it back. Asks for a save
/// one step after it has gone.
struct Saboteur {
  using kind = support::kinds::restore;
  using listens = frugal::list<frugal::on::step>;

  std::filesystem::path folder;
  std::uint64_t away_at = 0;  ///< step
  std::uint64_t back_at = 0;  ///< step
  bool* saved = nullptr;      ///< what the save was told

  template <class Context>
  struct State {
    using transient = void;
    std::filesystem::path folder;
    std::uint64_t away_at, back_at;
    bool* saved;
    explicit State(Saboteur const& settings)
        : folder(settings.folder),
          away_at(settings.away_at),
          back_at(settings.back_at),
          saved(settings.saved) {}
    void on_step(frugal::Step<Context>& phase) {
      auto const place = folder / "checkpoints";
      auto const aside = folder / "aside";
      if (phase.counters().step == away_at) {
        phase.save();  // nothing is being written when the folder goes
        std::filesystem::rename(place, aside);
        write_text(place, "no folder");
      }
      if (saved && phase.counters().step == away_at + 1) *saved = phase.save();
      if (phase.counters().step == back_at) {
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
  CHECK_THROWS_WITH_AS(
      run(job, Optimizer{}, policy, Saboteur{.folder = folder.path(), .away_at = 6}),
      doctest::Contains("mkdir"), frugal::StoreError);
  std::filesystem::remove(folder / "checkpoints");
  std::filesystem::rename(folder / "aside", folder / "checkpoints");
  CHECK((steps_in(folder.path()) == Steps{0, 4, 6}));
}

TEST_CASE("a checkpoint that cannot be written ends the run, and the last good one is there") {
  reports_a_failure(frugal::Checkpoint<Every<4>>{});
  reports_a_failure(frugal::Checkpoint<Every<4>, Async>{});
}

template <class Policy>
void goes_on(Policy policy) {
  policy.on_failure = OnFailure::GoOn;
  TemporaryFolder const folder;
  Job const job{.folder = folder.path()};
  Outcome const outcome = run(job, Optimizer{}, policy, frugal::Log<Every<100>>{},
                              Saboteur{.folder = folder.path(), .away_at = 6, .back_at = 15});
  CHECK(outcome.report.steps == 33);
  CHECK(steps_in(folder.path()).back() == 33);
  bool told = false;
  for (auto const& advice : outcome.report.advice) {
    told = told || advice.find("a checkpoint was not written") != std::string::npos;
  }
  CHECK(told);
  CHECK(text_of(folder / "metrics.jsonl").find("checkpoint_failed") != std::string::npos);
}

TEST_CASE("or it is reported and tried again at the next time, as the user chooses") {
  goes_on(frugal::Checkpoint<Every<4>>{});
  goes_on(frugal::Checkpoint<Every<4>, Async>{});
}

TEST_CASE("who asks for a save that a thread cannot write is told that it is not there") {
  TemporaryFolder const folder;
  bool saved = true;
  run({.folder = folder.path()}, Optimizer{},
      frugal::Checkpoint<Every<4>, Async>{.on_failure = OnFailure::GoOn},
      Saboteur{.folder = folder.path(), .away_at = 6, .back_at = 15, .saved = &saved});
  CHECK_FALSE(saved);
}

/// Looks, whenever a save takes the run's state, which checkpoint is the newest on the disk.
struct Looking {
  using kind = support::kinds::restore;
  using listens = frugal::list<frugal::on::step>;

  std::filesystem::path folder;
  std::vector<std::string>* newest = nullptr;

  template <class Context>
  struct State {
    std::filesystem::path folder;
    std::vector<std::string>* newest;
    at::Tensor large = at::zeros({1 << 20});  // takes longer to write than a step takes
    explicit State(Looking const& settings) : folder(settings.folder), newest(settings.newest) {}
    void on_step(frugal::Step<Context>&) {}
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

TEST_CASE("a thread has written the last snapshot before the next one takes its memory") {
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

TEST_CASE("settings without sense are refused") {
  TemporaryFolder const folder;
  using Auto = frugal::Checkpoint<Every<frugal::Auto>>;
  CHECK_THROWS_WITH_AS(run({.folder = {}}, Optimizer{}, Auto{}),
                       doctest::Contains("Checkpoint has nowhere to write"), frugal::SettingsError);
  CHECK_THROWS_AS(run({.folder = folder.path()}, Optimizer{}, Auto{.share = 0}),
                  frugal::SettingsError);
  CHECK_THROWS_AS(run({.folder = folder.path()}, Optimizer{}, Auto{.machine_lifetime = -1}),
                  frugal::SettingsError);
}

TEST_CASE("the log of a resumed run has the lines of one that was not, and what the resume cost") {
  TemporaryFolder const folder;
  auto const start = [&](std::string const& name, std::vector<std::uint64_t> const& deaths) {
    run_to_the_end({.folder = folder / name}, deaths, Optimizer{}, frugal::Log<Every<2>>{},
                   frugal::Checkpoint<Every<4>>{});
    std::vector<nlohmann::json> lines;
    for (auto const& text : lines_of(text_of(folder / name / "metrics.jsonl"))) {
      lines.push_back(nlohmann::json::parse(text));
      lines.back().erase("seconds");
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
  // The heart beats with the steps at first: 6 were done, and 4 were saved.
  CHECK(resumes[0].at("steps_repeated") <= 2);
  CHECK(resumes[0].at("seconds_lost") >= 0.0);
}

TEST_CASE("a checkpoint before a resumed run's first line does not count what is to be cut") {
  TemporaryFolder const folder;
  auto const start = [&](std::string const& name, std::vector<std::uint64_t> const& deaths) {
    run_to_the_end({.folder = folder / name}, deaths, Optimizer{}, frugal::Log<Every<8>>{},
                   frugal::Validate<Every<100>>{}, frugal::Checkpoint<Every<3>>{});
    std::vector<nlohmann::json> lines;
    for (auto const& text : lines_of(text_of(folder / name / "metrics.jsonl"))) {
      auto line = nlohmann::json::parse(text, nullptr, false);
      REQUIRE(line.is_object());
      line.erase("seconds");
      if (line.at("event") != "resume") lines.push_back(line);
    }
    return lines;
  };
  // The second start goes on from step 12, saves step 15 and then logs step 16; the third goes on
  // from 15.
  CHECK(start("killed", {14, 5}) == start("whole", {}));
}

TEST_CASE("memory of a snapshot is taken once") {
  frugal::Memory memory;
  at::Tensor const value = at::arange(6, at::kFloat).view({2, 3});
  void const* first = nullptr;
  for (int i = 0; i < 3; ++i) {
    frugal::MemoryWriter writer(memory, frugal::Copies::on_host);
    writer("value", value + i);
    CHECK(memory.tensors.at("value").equal(value + i));
    if (!first) first = memory.tensors.at("value").const_data_ptr();
    CHECK(memory.tensors.at("value").const_data_ptr() == first);
  }
}

}  // namespace frugal_test::policy_checkpoint
