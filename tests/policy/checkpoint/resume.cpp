// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <frugal/frugal.hpp>
#include <frugal/policy/checkpoint/resume.hpp>
#include <frugal/policy/checkpoint/weights.hpp>

#include "support/checkpoints.hpp"
#include "support/dying_runs.hpp"
#include "support/files.hpp"
#include "support/running.hpp"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

namespace frugal_test::policy_checkpoint_resume {

using namespace support;
using namespace support::dying_runs;
using frugal::Every;
using Optimizer = frugal::Optimize<frugal::AdamW>;
using Weights = frugal::Checkpoint<Every<1000>>;

/// Saves a checkpoint again as no save of a run does: with NaN in the last number of a file of
/// tensors.
void poison(std::filesystem::path const& run, std::string const& name) {
  frugal::RunDirectory directory(run);
  frugal::SavedCheckpoint const old = *directory.newest_valid().checkpoint;
  std::map<std::string, std::string> files;
  for (auto const& entry : old.manifest.files) files[entry.name] = text_of(old.folder / entry.name);
  std::string& text = files.at(name);
  text.replace(text.size() - 4, 4, std::string("\0\0\xC0\x7F", 4));
  frugal::CheckpointWriter writer = directory.begin(old.step());
  for (auto const& [file, contents] : files) {
    writer.add(file, [&](auto& sink) { sink.write(bytes_of(contents)); });
  }
  directory.commit(writer);
}

/// Where the run resumes if the newest checkpoint, of step 16, has a NaN in a file.
frugal::Report resumed_past(std::filesystem::path const& folder, std::string const& file) {
  Job job{.folder = folder, .dies_at = 20, .shape = {}};
  run(job, frugal::Optimize<frugal::SGD>{.momentum = 0.9}, frugal::Checkpoint<Every<4>>{});
  poison(folder, file);
  job.dies_at = 0;
  return run(job, frugal::Optimize<frugal::SGD>{.momentum = 0.9}, frugal::Checkpoint<Every<4>>{},
             frugal::Log<Every<100>>{})
      .report;
}

TEST_CASE("a checkpoint whose weights are not finite is passed over, with advice and an event") {
  TemporaryFolder const folder;
  frugal::Report const report = resumed_past(folder.path(), "model.safetensors");
  REQUIRE(report.resumed);
  CHECK(report.resumed->step == 12);
  REQUIRE(report.resumed->damaged.size() == 1);
  CHECK(report.resumed->damaged[0].find("tensor 'second.weight' holds NaN") != std::string::npos);
  CHECK(advises(report, "a checkpoint is not finite and was not used: "));
  CHECK(text_of(folder / "metrics.jsonl").find("\"checkpoint_passed_over\"") != std::string::npos);
  CHECK(report.steps == 33);
}

TEST_CASE("so is one whose optimizer's state is not finite") {
  TemporaryFolder const folder;
  Job job{.folder = folder.path(), .dies_at = 20, .shape = {}};
  run(job, frugal::Optimize<frugal::SGD>{.momentum = 0.9}, frugal::Checkpoint<Every<4>>{});
  auto const newest = newest_in(folder.path());
  auto const file = frugal::Safetensors::open(newest / "optimizer.safetensors");
  frugal::detail::FiniteState const finite;
  CHECK(frugal::detail::first_bad_in(frugal::read_checkpoint(newest), finite).empty());
  auto const momentum = file.at("policies/Optimize/second.weight/momentum_buffer");
  std::string text = text_of(newest / "optimizer.safetensors");
  std::string const found(reinterpret_cast<char const*>(momentum.bytes.data()),
                          momentum.bytes.size());
  text.replace(text.find(found), 4, std::string("\0\0\x80\x7F", 4));  // infinity
  write_text(newest / "optimizer.safetensors", text);
  CHECK(frugal::detail::first_bad_in(frugal::read_checkpoint(newest), finite) ==
        "optimizer.safetensors, tensor 'policies/Optimize/second.weight/momentum_buffer' holds NaN "
        "or infinity");
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

TEST_CASE("a run without a whole checkpoint starts over, and reports why") {
  TemporaryFolder const folder;
  Job job{.folder = folder.path(), .dies_at = 3};
  run(job, Optimizer{}, frugal::Checkpoint<Every<1000>>{});
  std::filesystem::remove(newest_in(folder.path()) / "state.json");
  job.dies_at = 0;
  Outcome const outcome = run(job, Optimizer{}, frugal::Checkpoint<Every<1000>>{});
  CHECK_FALSE(outcome.report.resumed);
  CHECK(outcome.losses.size() == 33);
  bool told = false;
  for (auto const& advice : outcome.report.warnings) {
    told = told || (advice.find("damaged") != std::string::npos &&
                    advice.find("state.json") != std::string::npos);
  }
  CHECK(told);
}

/// The error of a second start with a change; its module is untouched.
template <class... Ps>
std::string refusal(Job const& job, Ps const&... policies) {
  auto const module = std::make_shared<Mlp>(job.shape);
  auto const before = tensors_of(*module);
  std::vector<double> losses;
  frugal::Trainer trainer{
      module, Witness{.losses = &losses},
      frugal::Settings{.run_dir = job.folder, .epochs = job.epochs, .seed = job.seed}, policies...};
  frugal::TensorDataset train(samples(43, 91, job.shape.features), {.batch = 4});
  try {
    static_cast<void>(trainer.fit(train, validation_data(job.shape)));
  } catch (frugal::StateError const& error) {
    CHECK(same_bits(tensors_of(*module), before));
    CHECK(losses.empty());
    CHECK(error.fault().where.find(job.folder.string()) == 0);
    CHECK(error.fault().fix.find("Resume::Weights") != std::string::npos);
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

TEST_CASE("another number of threads is reported at a resume") {
  TemporaryFolder const folder;
  Job job{.folder = folder.path(), .dies_at = 6};
  run(job, Optimizer{}, frugal::Checkpoint<Every<4>>{});
  job.dies_at = 0;
  int const threads = at::get_num_threads();
  at::set_num_threads(threads + 1);
  Outcome const resumed =
      run(job, Optimizer{}, frugal::Accumulate<1>{}, frugal::Checkpoint<Every<4>>{});
  at::set_num_threads(threads);
  CHECK(advises(resumed.report, std::to_string(threads) + " threads and continues with " +
                                    std::to_string(threads + 1)));
  CHECK_FALSE(advises(resumed.report, "steps in an epoch"));
}

TEST_CASE("another batch size of a shuffled set, which keeps its order, is named in the advice") {
  TemporaryFolder const folder;
  Job const job{.folder = folder.path(), .epochs = 1};
  run(job, Optimizer{}, frugal::Checkpoint<Every<4>>{});
  frugal::Trainer trainer{std::make_shared<Mlp>(job.shape), frugal::CrossEntropy{},
                          frugal::Settings{.run_dir = job.folder, .epochs = 4, .seed = job.seed},
                          Optimizer{}, frugal::Checkpoint<Every<4>>{}};
  frugal::TensorDataset train(samples(43), {.batch = 8, .shuffle = true});
  CHECK(advises(trainer.fit(train, validation_data(job.shape)),
                "11 steps in an epoch and continues with 6"));
}

TEST_CASE("a checkpoint with the state of an absent policy is refused") {
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

TEST_CASE("a refused start writes nothing into the log of the existing run") {
  TemporaryFolder const folder;
  frugal::RunDirectory const first(folder.path());
  CHECK_THROWS_AS(
      run({.folder = folder.path()}, Optimizer{}, frugal::Log<>{}, frugal::Checkpoint<Every<4>>{}),
      frugal::LockError);
  CHECK(text_of(folder / "metrics.jsonl").empty());
}

TEST_CASE("weights without any matching name are refused") {
  TemporaryFolder const folder;
  torch::nn::Linear linear(6, 3);
  frugal::Trainer trainer{linear, frugal::CrossEntropy{},
                          frugal::Settings{.run_dir = folder / "donor", .epochs = 1}, Optimizer{},
                          Weights{}};
  frugal::TensorDataset train(samples(8), {.batch = 4});
  static_cast<void>(trainer.fit(train));
  CHECK_THROWS_WITH_AS(run({.folder = folder / "run"}, Optimizer{},
                           Weights{.resume = frugal::Resume::Weights, .from = folder / "donor"}),
                       doctest::Contains("no tensor there has the name of a tensor here"),
                       frugal::StateError);
}

TEST_CASE("a checkpoint of other dtypes is refused") {
  TemporaryFolder const folder;
  auto const start = [&](at::ScalarType type) {
    auto const module = std::make_shared<Mlp>();
    module->to(type);
    frugal::Trainer trainer{module, frugal::CrossEntropy{},
                            frugal::Settings{.run_dir = folder.path(), .epochs = 1}, Optimizer{},
                            frugal::Checkpoint<Every<4>>{}};
    frugal::Batch data = samples(8);
    data.data = data.data.to(type);
    frugal::TensorDataset train(data, {.batch = 4});
    return trainer.fit(train);
  };
  start(at::kFloat);
  CHECK_THROWS_WITH_AS(start(at::kDouble),
                       doctest::Contains("'first.weight' is F32 [8, 6] there and F64 [8, 6] here"),
                       frugal::StateError);
}

using Files = std::map<std::string, std::string>;

/// Replaces the newest checkpoint by one with other files and a valid manifest.
template <class Change>
void forge(std::filesystem::path const& folder, Change&& change) {
  frugal::RunDirectory directory(folder);
  auto const from = *directory.newest_valid().checkpoint;
  Files files;
  for (auto const& entry : from.manifest.files) {
    files[entry.name] = text_of(from.folder / entry.name);
  }
  change(files);
  frugal::CheckpointWriter writer = directory.begin(from.step());
  for (auto const& [name, text] : files) {
    writer.add(name, [&bytes = text](auto& sink) { sink.write(bytes_of(bytes)); });
  }
  directory.commit(writer);
}

/// The error of a resume from a forged checkpoint; the module is untouched.
template <class Change>
std::string said_of_forged(Change&& change) {
  TemporaryFolder const folder;
  Job const job{.folder = folder.path(), .epochs = 1};
  using Saves = frugal::Checkpoint<Every<4>, frugal::KeepBest<>>;
  run(job, Optimizer{}, Saves{});
  forge(folder.path(), std::forward<Change>(change));
  auto const module = std::make_shared<Mlp>(job.shape);
  auto const before = tensors_of(*module);
  frugal::Trainer trainer{module, frugal::CrossEntropy{},
                          frugal::Settings{.run_dir = job.folder, .epochs = 2, .seed = job.seed},
                          Optimizer{}, Saves{}};
  frugal::TensorDataset train(samples(43), {.batch = 4});
  try {
    static_cast<void>(trainer.fit(train, validation_data(job.shape)));
  } catch (frugal::Error const& error) {
    CHECK(same_bits(tensors_of(*module), before));
    return error.what();
  }
  return "nothing was refused";
}

auto edited(std::string const& path, nlohmann::json const& value) {
  return [=](Files& files) {
    auto state = nlohmann::json::parse(files.at("state.json"));
    REQUIRE(state.at("values").contains(path));
    state["values"][path] = value;
    files["state.json"] = state.dump();
  };
}

TEST_CASE("a checkpoint whose manifest does not list a file is not resumed from with that file") {
  for (std::string const name : {"model.safetensors", "optimizer.safetensors", "state.json"}) {
    CAPTURE(name);
    std::string const text = said_of_forged([&](Files& files) { files.erase(name); });
    CHECK(text.find("manifest.json): it does not list " + name) != std::string::npos);
  }
}

TEST_CASE("weights are not taken from a file that its manifest does not list") {
  TemporaryFolder const folder;
  run({.folder = folder / "donor", .epochs = 1}, Optimizer{}, Weights{});
  auto const checkpoint = newest_in(folder / "donor");
  std::string const model = text_of(checkpoint / "model.safetensors");
  forge(folder / "donor", [](Files& files) { files.erase("model.safetensors"); });
  write_text(newest_in(folder / "donor") / "model.safetensors", model);
  for (auto const& from : {folder / "donor", newest_in(folder / "donor")}) {
    CHECK_THROWS_WITH_AS(run({.folder = folder / "run"}, Optimizer{},
                             Weights{.resume = frugal::Resume::Weights, .from = from}),
                         doctest::Contains("it does not list model.safetensors"),
                         frugal::FormatError);
  }
}

TEST_CASE("weights of a named checkpoint are checked against its manifest") {
  TemporaryFolder const folder;
  run({.folder = folder / "donor", .epochs = 1}, Optimizer{}, Weights{});
  auto const from = newest_in(folder / "donor");
  flip_bit(from / "model.safetensors",
           8 * std::filesystem::file_size(from / "model.safetensors") - 3);
  CHECK_THROWS_WITH_AS(run({.folder = folder / "run"}, Optimizer{},
                           Weights{.resume = frugal::Resume::Weights, .from = from}),
                       doctest::Contains("a file of a checkpoint is damaged"), frugal::FormatError);
}

/// The file of tensors with another state of the CPU's generator.
auto generator(at::Tensor const& state) {
  return [=](Files& files) {
    TemporaryFolder const folder;
    write_text(folder / "before", files.at("optimizer.safetensors"));
    auto const before = frugal::Safetensors::open(folder / "before");
    std::vector<frugal::TensorView> views;
    std::string const name = "generators/cpu";
    for (std::size_t i = 0; i < before.size(); ++i) {
      views.push_back(before[i].name == name ? frugal::detail::stored_view(name, state)
                                             : before[i]);
    }
    frugal::SafetensorsWriter const writer(std::move(views), {{"format", "pt"}}, "forged");
    frugal::File file = frugal::File::create(folder / "after");
    writer.write(file);
    file.close();
    files["optimizer.safetensors"] = text_of(folder / "after");
  };
}

TEST_CASE("a generator state that LibTorch would not accept is refused with its name") {
  at::Tensor const good = at::globalContext().defaultGenerator(at::kCPU).get_state();
  for (at::Tensor const& state :
       {at::zeros({3}, at::kByte), good.to(at::kFloat), at::zeros_like(good)}) {
    std::string const text = said_of_forged(generator(state));
    CAPTURE(text);
    CHECK(text.find("a checkpoint cannot be resumed from") != std::string::npos);
    CHECK(text.find("tensor 'generators/cpu'") != std::string::npos);
    CHECK(text.find("Exception raised from") == std::string::npos);
  }
}

TEST_CASE("a count of items that were not saved is refused before memory is allocated for it") {
  std::uint64_t const many = std::uint64_t{1} << 62;
  CHECK(said_of_forged(edited("policies/Checkpoint/best.loss", many))
            .find("'policies/Checkpoint/best.loss': its items were not saved") !=
        std::string::npos);
  CHECK(said_of_forged(edited("run/validations", many)).find("it was not saved") !=
        std::string::npos);
}

TEST_CASE("a state with another step than its manifest is refused") {
  CHECK(said_of_forged(edited("counters/step", 7)).find("it is of step 7, and the manifest says") !=
        std::string::npos);
}

TEST_CASE("counters that no run reaches are refused, with their bound") {
  std::uint64_t const beyond = std::uint64_t{1} << 63;
  CHECK(said_of_forged(edited("counters/epoch", beyond))
            .find("counters/epoch is 9223372036854775808, and can be at most 11") !=
        std::string::npos);
  // Eleven micro-batches make eleven steps at most, and these eleven epochs.
  CHECK(said_of_forged(edited("counters/epoch", 12)).find("can be at most 11") !=
        std::string::npos);
  for (std::string const name :
       {"position", "micro_batch", "sample", "token", "skipped", "passed_over",
        "window_micro_batches", "window_samples", "window_tokens", "window_skipped"}) {
    CAPTURE(name);
    std::string const text = said_of_forged(edited("counters/" + name, beyond));
    CAPTURE(text);
    CHECK(text.find("counters/" + name + " is 9223372036854775808") != std::string::npos);
  }
}

auto with_version(std::uint64_t version) {
  return [=](Files& files) {
    auto state = nlohmann::json::parse(files.at("state.json"));
    state["version"] = version;
    files["state.json"] = state.dump();
  };
}

TEST_CASE("a state of a newer version is refused, not skipped") {
  TemporaryFolder const folder;
  Job const job{.folder = folder.path(), .epochs = 1};
  run(job, Optimizer{}, frugal::Checkpoint<Every<4>>{});
  forge(folder.path(), with_version(frugal::detail::StateFile::newest_version + 1));
  CHECK_THROWS_AS(run(job, Optimizer{}, frugal::Checkpoint<Every<4>>{}), frugal::NewerFormatError);
}

TEST_CASE("a state of an older version is refused, with the file and the version") {
  std::string const text =
      said_of_forged(with_version(frugal::detail::StateFile::newest_version - 1));
  CAPTURE(text);
  CHECK(text.find("the state of the checkpoint has an older format") != std::string::npos);
  CHECK(text.find("/state.json)") != std::string::npos);
  CHECK(text.find("its version is 2") != std::string::npos);
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

TEST_CASE("a run that began with another run's weights resumes with its own") {
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

TEST_CASE("weights without a match are listed, and the others are loaded") {
  TemporaryFolder const folder;
  Job job{.folder = folder / "donor", .epochs = 1};
  Outcome const donor = run(job, Optimizer{}, Weights{});
  job.folder = folder / "other";
  job.shape.norm = false;
  Outcome const other =
      run(job, Optimizer{}, Weights{.resume = frugal::Resume::Weights, .from = folder / "donor"});
  CHECK(advises(other.report, "'norm.weight' is not in the module"));
  job.folder = folder / "third";
  job.shape = {.hidden = 9};
  CHECK_THROWS_WITH_AS(
      run(job, Optimizer{}, Weights{.resume = frugal::Resume::Weights, .from = folder / "donor"}),
      doctest::Contains("'first.weight' is F32 [8, 6] there and F32 [9, 6] here"),
      frugal::StateError);
}

TEST_CASE("Resume::Weights from a folder without a checkpoint is an error") {
  TemporaryFolder const folder;
  std::filesystem::create_directories(folder / "empty");
  CHECK_THROWS_WITH_AS(run({.folder = folder / "run"}, Optimizer{},
                           Weights{.resume = frugal::Resume::Weights, .from = folder / "empty"}),
                       doctest::Contains("it has no complete checkpoint"), frugal::StoreError);
}

TEST_CASE(
    "Resume::Never begins at step 0 in a folder with checkpoints, and its saves are the newest") {
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

TEST_CASE("WeightsIn<BF16> writes weights of half the size, and resumes from them rounded") {
  TemporaryFolder const folder;
  Job job{.folder = folder.path(), .dies_at = 10};
  using Half = frugal::Checkpoint<Every<4>, frugal::WeightsIn<frugal::BF16>>;
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
  auto const advice = run(job, Optimizer{}, frugal::Checkpoint<Every<4>>{}).report.warnings;
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
                          frugal::Settings{.run_dir = folder.path(), .epochs = 1}, Optimizer{},
                          frugal::Checkpoint<Every<4>, frugal::WeightsIn<frugal::FP16>>{}};
  frugal::TensorDataset train(samples(8), {.batch = 4});
  CHECK_THROWS_WITH_AS(trainer.fit(train), doctest::Contains("tensor 'second.weight', step 0"),
                       frugal::WeightRangeError);
}

}  // namespace frugal_test::policy_checkpoint_resume
