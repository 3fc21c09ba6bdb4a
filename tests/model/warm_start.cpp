// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <frugal/frugal.hpp>
#include <frugal/model/warm_start.hpp>
#include <frugal/report/find_learning_rate.hpp>

#include "support/checkpoints.hpp"
#include "support/dying_runs.hpp"
#include "support/files.hpp"
#include "support/weight_files.hpp"

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace frugal_test::model_warm_start {

using namespace support;
using namespace support::dying_runs;
namespace fr = frugal;

/// A file with the weights of a module, each multiplied.
std::filesystem::path write_weights(std::filesystem::path const& path, float factor = 2) {
  Mlp module({.dropout = 0.3, .norm = true});
  Tensors tensors = copies_of(module);
  for (auto& [name, tensor] : tensors) {
    if (tensor.is_floating_point()) tensor = tensor * factor;
  }
  write_safetensors(path, tensors);
  return path;
}

at::Tensor first_weight(Outcome const& outcome) { return outcome.tensors.at("first.weight"); }
at::Tensor first_weight(float factor) {
  return Mlp({.dropout = 0.3, .norm = true}).first->weight.detach() * factor;
}

/// Sees the module as other policies that adapt it do.
struct Adapts {
  struct kind : fr::optional_kind {
    static constexpr std::string_view name = "Adapts";
    static constexpr fr::Stage stage = fr::Stage::prepare;
  };
  using listens = fr::list<fr::on::fit_end>;
  using properties = fr::list<fr::property::adapts>;
  std::vector<at::Tensor>* seen = nullptr;

  void adapt(torch::nn::Module& module) const {
    seen->push_back(module.named_parameters()["first.weight"].detach().clone());
  }
  struct State {
    using transient = void;
    explicit State(Adapts const&) {}
    void on_fit_end(fr::FitEnd&) {}
  };
};

TEST_CASE("a new run begins with the weights of the file, and so does its first checkpoint") {
  TemporaryFolder const folder;
  fr::WarmStart const start{.from = write_weights(folder / "w")};
  auto const module = std::make_shared<Mlp>(Mlp::Shape{.dropout = 0.3, .norm = true});
  fr::Trainer trainer{module,
                      fr::CrossEntropy{},
                      fr::Settings{.run_dir = folder / "run", .epochs = 1},
                      fr::Optimize<fr::Nothing>{},
                      fr::Checkpoint<fr::Every<1000>>{},
                      start};
  CHECK_THROWS_WITH_AS(trainer.policy<fr::kinds::warm_start>().weights(),
                       doctest::Contains("no fit has begun"), fr::StateError);
  fr::TensorDataset train(samples(43), {.batch = 4});
  fr::Report const report = trainer.fit(train);
  CHECK(module->first->weight.equal(first_weight(2)));
  CHECK(trainer.policy<fr::kinds::warm_start>().weights().complete());
  Mlp begun({.dropout = 0.3, .norm = true});
  fr::load_weights(begun, folder / "run/checkpoints/step-00000000");
  CHECK(begun.first->weight.equal(first_weight(2)));
}

TEST_CASE("a resumed run has its own weights, and needs no file") {
  TemporaryFolder const folder;
  auto const policies = [&](auto const& job) {
    return run(job, fr::Optimize<fr::AdamW>{.lr = 0.05}, fr::Checkpoint<fr::Every<5>>{},
               fr::WarmStart{.from = folder / "w"});
  };
  write_weights(folder / "w");
  Outcome const whole = policies(Job{.folder = folder / "whole"});
  CHECK(policies(Job{.folder = folder / "run", .dies_at = 17}).died);
  std::filesystem::remove(folder / "w");
  Outcome const resumed = policies(Job{.folder = folder / "run"});
  REQUIRE(resumed.report.resumed);
  CHECK(resumed.report.resumed->step == 15);
  CHECK(same_bits(resumed.tensors, whole.tensors));
}

TEST_CASE("a run whose checkpoints are all damaged begins with the file again, before it saves") {
  TemporaryFolder const folder;
  write_weights(folder / "w");
  auto const start = [&] {
    return run(Job{.folder = folder / "run", .epochs = 1}, fr::Optimize<fr::Nothing>{},
               fr::Checkpoint<fr::Every<1000>, fr::Keep<9>>{}, fr::WarmStart{.from = folder / "w"});
  };
  start();
  for (auto const& each : std::filesystem::directory_iterator(folder / "run/checkpoints")) {
    flip_bit(each.path() / "model.safetensors", 3000);
  }
  write_weights(folder / "w", 3);
  Outcome const again = start();
  CHECK_FALSE(again.report.resumed);
  CHECK(first_weight(again).equal(first_weight(3)));
  Mlp begun({.dropout = 0.3, .norm = true});
  fr::load_weights(begun, folder / "run");
  CHECK(begun.first->weight.equal(first_weight(3)));
}

TEST_CASE("weights that Checkpoint is asked to take come after those of the file") {
  TemporaryFolder const folder;
  write_weights(folder / "w", 2);
  write_weights(folder / "other", 5);
  auto const start = [&](fr::Checkpoint<fr::Every<1000>> const& checkpoint) {
    return first_weight(run(Job{.folder = folder / "run", .epochs = 1}, fr::Optimize<fr::Nothing>{},
                            checkpoint, fr::WarmStart{.from = folder / "w"}));
  };
  CHECK(start({.resume = fr::Resume::Weights, .from = folder / "other"}).equal(first_weight(5)));
  // Of the run's own checkpoint, which has no resume in it.
  CHECK(start({.resume = fr::Resume::Weights}).equal(first_weight(5)));
}

TEST_CASE("policies that adapt the module see the weights, also in a run that is resumed") {
  TemporaryFolder const folder;
  write_weights(folder / "w");
  std::vector<at::Tensor> seen;
  auto const start = [&](std::uint64_t dies_at) {
    return run(Job{.folder = folder / "run", .dies_at = dies_at}, fr::Optimize<fr::SGD>{.lr = 0.1},
               fr::Checkpoint<fr::Every<5>>{}, fr::WarmStart{.from = folder / "w"},
               Adapts{.seen = &seen});
  };
  CHECK(start(17).died);
  CHECK(start(0).report.resumed);
  REQUIRE(seen.size() == 2);
  for (at::Tensor const& each : seen) CHECK(each.equal(first_weight(2)));
}

TEST_CASE("a module is loaded once: a further fit, or one after a dry run, continues with it") {
  TemporaryFolder const folder;
  write_weights(folder / "w");
  auto const module = std::make_shared<Mlp>(Mlp::Shape{.dropout = 0.3, .norm = true});
  fr::Trainer trainer{module, fr::CrossEntropy{}, fr::Settings{.epochs = 1},
                      fr::Optimize<fr::Nothing>{}, fr::WarmStart{.from = folder / "w"}};
  fr::TensorDataset train(samples(43), {.batch = 4});
  std::ostringstream checks;
  CHECK(trainer.dry_run(train, checks));
  CHECK(module->first->weight.equal(first_weight(2)));
  {
    at::NoGradGuard const no_gradients;
    module->first->weight.mul_(4);
  }
  trainer.fit(train);
  CHECK(module->first->weight.equal(first_weight(8)));
  // Another module is another matter, even with the same policy.
  fr::Trainer other{std::make_shared<Mlp>(Mlp::Shape{.dropout = 0.3, .norm = true}),
                    fr::CrossEntropy{}, fr::Settings{.epochs = 1}, fr::Optimize<fr::Nothing>{},
                    trainer.policy<fr::kinds::warm_start>()};
  other.fit(train);
  CHECK(other.module()->first->weight.equal(first_weight(2)));
}

TEST_CASE("whatever uses the trainer's module first loads the weights") {
  TemporaryFolder const folder;
  write_weights(folder / "w");
  auto const trainer_of = [&](std::shared_ptr<Mlp> const& module) {
    return fr::Trainer{module,
                       fr::CrossEntropy{},
                       fr::Settings{.run_dir = folder / "run", .epochs = 1},
                       fr::Optimize<fr::SGD>{.lr = 0.1},
                       fr::Checkpoint<fr::Every<5>>{},
                       fr::WarmStart{.from = folder / "w"}};
  };
  fr::TensorDataset train(samples(43), {.batch = 4});
  fr::TensorDataset valid = validation_data();
  Mlp::Shape const shape{.dropout = 0.3, .norm = true};
  double losses[2];
  for (double& each : losses) {  // the second time the run has checkpoints
    auto const module = std::make_shared<Mlp>(shape);
    auto trainer = trainer_of(module);
    each = trainer.evaluate(valid)["loss"];
    CHECK(module->first->weight.equal(first_weight(2)));
    trainer.fit(train);
  }
  CHECK(losses[0] == losses[1]);
  auto const module = std::make_shared<Mlp>(shape);
  auto trainer = trainer_of(module);
  fr::find_learning_rate(trainer, train, {.steps = 20});
  CHECK(module->first->weight.equal(first_weight(2)));
}

TEST_CASE("weights that do not fit end the fit before its first step, with the module as it was") {
  TemporaryFolder const folder;
  write_safetensors(folder / "w", {{"first.weight", at::ones({8, 6})}});
  auto const module = std::make_shared<Mlp>();
  Tensors const before = copies_of(*module);
  auto const fit = [&](fr::WarmStart const& start) {
    fr::Trainer trainer{module,
                        fr::CrossEntropy{},
                        fr::Settings{.run_dir = folder / "run", .epochs = 1},
                        fr::Optimize<fr::SGD>{.lr = 0.1},
                        fr::Checkpoint<fr::Every<5>>{},
                        start};
    fr::TensorDataset train(samples(43), {.batch = 4});
    trainer.fit(train);
  };
  CHECK_THROWS_WITH_AS(fit({.from = folder / "w"}),
                       doctest::Contains("missing there: 'first.bias', 'second.weight'"),
                       fr::StateError);
  CHECK_THROWS_WITH_AS(fit({}), doctest::Contains("WarmStart has no weights"), fr::SettingsError);
  CHECK_THROWS_AS(fit({.from = folder / "nothing"}), fr::StoreError);
  CHECK(equal(copies_of(*module), before));
  CHECK_FALSE(std::filesystem::exists(folder / "run/checkpoints"));
  fit({.from = folder / "w", .rules = {.parts = {"first.weight"}}});
}

TEST_CASE("the log of the run that begins with the file names it, and no other log") {
  TemporaryFolder const folder;
  auto const path = write_weights(folder / "w");
  auto const start = [&](std::uint64_t dies_at) {
    run(Job{.folder = folder / "run", .dies_at = dies_at}, fr::Optimize<fr::SGD>{.lr = 0.1},
        fr::Log<fr::Every<1>>{}, fr::Checkpoint<fr::Every<5>>{}, fr::WarmStart{.from = path});
    std::size_t lines = 0;
    for (std::string const& line : lines_of(text_of(folder / "run/metrics.jsonl"))) {
      bool const is_ours = line.find("\"weights\"") != std::string::npos;
      lines += is_ours && line.find(path.string()) != std::string::npos ? 1 : 0;
    }
    return lines;
  };
  CHECK(start(12) == 1);
  CHECK(start(0) == 1);
}

}  // namespace frugal_test::model_warm_start
