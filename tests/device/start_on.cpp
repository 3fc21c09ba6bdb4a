// SPDX-License-Identifier: Apache-2.0
// StartOn<Cpu> with a second device: a run that moves has the same bits as one that does not.
#include <doctest/doctest.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <limits>

#include <frugal/policy/start_on.hpp>

#include "conform/policies.hpp"
#include "support/fake_device.hpp"
#include "support/files.hpp"
#include "support/running.hpp"

namespace frugal_test::device_start_on {

using namespace frugal_test::support;
using namespace frugal_test::conform;
using frugal::Cpu;
using frugal::Epochs;
using frugal::StartOn;
using frugal::Steps;

struct Ended {
  frugal::Report report;
  std::map<std::string, at::Tensor> tensors;
  Seen seen;
  std::map<std::uint64_t, Frozen> after_step;
  std::vector<c10::DeviceType> placed;  ///< the module's device after each step
  std::string state;                    ///< paths of tensors that are not on the module's device
};

/// Names the tensors of a run's state that are not on the given device.
std::string elsewhere(frugal::StateDict const& memory, c10::Device device) {
  std::string text;
  for (auto const& [path, tensor] : memory.tensors) {
    // A torch optimizer keeps its state in a blob of bytes, and Rollback in host memory.
    if (path.ends_with("torch_optim") || path.starts_with("policies/Rollback")) continue;
    if (tensor.device() != device) text += path + " ";
  }
  return text;
}

/// Names the entries in which two state dicts differ.
std::string differing(frugal::StateDict const& a, frugal::StateDict const& b) {
  std::string text;
  auto const compare_with = [&](frugal::StateDict const& all, frugal::StateDict const& other) {
    for (auto const& [path, value] : all.values) {
      frugal::StateDict left{.values = {{path, value}}, .tensors = {}};
      frugal::StateDict right;
      if (other.values.contains(path)) right.values.insert(*other.values.find(path));
      if (all.tensors.contains(path)) left.tensors.insert(*all.tensors.find(path));
      if (other.tensors.contains(path)) right.tensors.insert(*other.tensors.find(path));
      if (!(left == right)) text += path + " ";
    }
  };
  compare_with(a, b);
  compare_with(b, a);
  return text;
}

/// Three epochs of 11 batches on a device; the fake device must produce the CPU's bits.
template <class... Ps>
Ended run(frugal::list<Ps...> policies, c10::Device device, Frozen const* from = nullptr,
          double dropout = 0) {
  Ended ended;
  TemporaryFolder folder;
  auto const module = std::make_shared<Mlp>(Mlp::Shape{.dropout = dropout, .norm = true});
  frugal::Trainer<std::shared_ptr<Mlp>, frugal::CrossEntropy, Ps..., Spy, Resume> trainer{
      module,
      {},
      {.run_dir = folder.path(), .epochs = 3, .seed = 7, .device = device},
      Spy{.seen = &ended.seen,
          .each_step =
              [&](frugal::Counters const&) {
                ended.placed.push_back(module->first->weight.device().type());
              }},
      Resume{.from = from, .after_step = &ended.after_step}};
  prepare_all(trainer, policies);
  frugal::TensorDataset train(samples(43), {.batch = 4, .shuffle = true});
  frugal::TensorDataset valid(samples(15, 92), {.batch = 4});
  ended.report = trainer.fit(train, valid);
  ended.state = elsewhere(ended.after_step.rbegin()->second.run, module->first->weight.device());
  module->to(c10::kCPU);
  ended.tensors = tensors_of(*module);
  return ended;
}

void compare(Ended const& a, Ended const& b) {
  CHECK(same_bits(a.tensors, b.tensors));
  CHECK(a.report.steps == b.report.steps);
  CHECK(a.report.samples == b.report.samples);
  CHECK(a.report.train_loss == b.report.train_loss);
  CHECK(a.report.stopped_by == b.report.stopped_by);
  CHECK(a.seen.rates == b.seen.rates);
  CHECK(a.seen.losses == b.seen.losses);
  CHECK(a.seen.epoch_losses == b.seen.epoch_losses);
  REQUIRE(a.seen.validations.size() == b.seen.validations.size());
  for (std::size_t i = 0; i < a.seen.validations.size(); ++i) {
    CHECK(a.seen.validations[i].metrics == b.seen.validations[i].metrics);
  }
}

std::size_t steps_on(Ended const& ended, c10::DeviceType type) {
  return static_cast<std::size_t>(std::count(ended.placed.begin(), ended.placed.end(), type));
}

/// A run that moves after five steps, and one that moves after an epoch, compared with one on the
/// CPU.
template <class... Ps>
void moves(frugal::list<Ps...> policies) {
  CAPTURE(std::string(frugal::detail::type_name<frugal::list<Ps...>>()));
  Ended const stays = run(policies, c10::kCPU);
  Ended const moved = run(frugal::list<Ps..., StartOn<Cpu, Steps<5>>>{}, fake::device());
  CHECK(steps_on(moved, c10::kCPU) == 5);
  CHECK(steps_on(moved, fake::type) == stays.placed.size() - 5);
  CHECK(moved.state.empty());
  compare(stays, moved);
  CHECK(fake::complaints().empty());
  // No state is left on the host: the tensors of later steps are on the device.
  Ended const epoch = run(frugal::list<Ps..., StartOn<Cpu>>{}, fake::device());
  CHECK(steps_on(epoch, c10::kCPU) == stays.placed.size() / 3);
  compare(stays, epoch);
  CHECK(fake::complaints().empty());
}

TEST_CASE(
    "a run that moves has the bits of one that does not: AdamW, windows, clipping, averages") {
  moves(frugal::list<frugal::Optimize<frugal::AdamW>, frugal::Accumulate<3>,
                     frugal::Schedule<frugal::Warmup<3>, frugal::Cosine>,
                     frugal::Validate<frugal::Every<2>, frugal::Accuracy>,
                     frugal::EarlyStop<frugal::Patience<50>>, frugal::Log<frugal::Every<2>>,
                     frugal::Progress<>, frugal::DryRun<>, frugal::ClipValue<0.1>,
                     frugal::Average<frugal::Ema<0.9>>, frugal::Checkpoint<frugal::Every<5>>,
                     frugal::Throughput<frugal::Every<4>>>{});
}

TEST_CASE("a run that moves has the bits of one that does not: SGD, plateau, Rollback, Async") {
  moves(frugal::list<
        frugal::Optimize<frugal::SGD>, frugal::Schedule<frugal::Plateau<0.5, frugal::Patience<1>>>,
        frugal::Validate<frugal::Every<2>>, frugal::Rollback<frugal::Every<3>>,
        frugal::Average<frugal::Swa<frugal::From<4>, frugal::Every<3>>>,
        frugal::Recompute<frugal::Segments<2>>,
        frugal::Checkpoint<frugal::Every<1, frugal::Epoch>, frugal::Async, frugal::KeepBest<>>>{});
}

TEST_CASE("a run that moves has the bits of one that does not: Adam, Adagrad, torch's optimizers") {
  moves(frugal::list<frugal::Optimize<frugal::Adam>, frugal::Validate<>,
                     frugal::Audit<frugal::BitExact>>{});
  moves(frugal::list<frugal::Optimize<frugal::Adagrad>, frugal::KeepHostMemory,
                     frugal::Activations<frugal::Offload>>{});
  moves(frugal::list<frugal::Optimize<frugal::Any>, frugal::FlushDenormals>{});
}

TEST_CASE(
    "the best weights are restored on the device, also those of a validation before the move") {
  auto const start = [](c10::Device device, auto const&... start_on) {
    auto const module = std::make_shared<Mlp>(Mlp::Shape{.norm = true});
    frugal::Trainer trainer{module,
                            frugal::CrossEntropy{},
                            frugal::Settings{.epochs = 3, .seed = 7, .device = device},
                            frugal::Optimize<frugal::SGD>{.lr = 4.0},
                            frugal::Validate<frugal::Every<2>>{},
                            frugal::EarlyStop<frugal::Patience<50>>{.restore_best = true},
                            start_on...};
    frugal::TensorDataset train(samples(43), {.batch = 4, .shuffle = true});
    frugal::TensorDataset valid(samples(15, 92), {.batch = 4});
    auto const report = trainer.fit(train, valid);
    CHECK(module->first->weight.device() == device);
    module->to(c10::kCPU);
    return std::pair(report.restored_step, tensors_of(*module));
  };
  auto const [step, tensors] = start(c10::kCPU);
  REQUIRE(step);
  REQUIRE(*step > 5);
  auto const before = start(fake::device(), StartOn<Cpu, Steps<5>>{});
  auto const after = start(fake::device(), StartOn<Cpu, Steps<31>>{});
  REQUIRE(*step < 31);
  for (auto const& each : {before, after, start(fake::device())}) {
    CHECK(each.first == step);
    CHECK(same_bits(each.second, tensors));
  }
  CHECK(fake::complaints().empty());
}

TEST_CASE("a run resumed before, at or after the move ends with the bits of an uninterrupted one") {
  using Policies = frugal::list<frugal::Optimize<frugal::AdamW>, frugal::Accumulate<2>,
                                frugal::Schedule<frugal::Warmup<3>, frugal::Cosine>,
                                frugal::Average<frugal::Ema<0.9>>,
                                frugal::Rollback<frugal::Every<4>>, StartOn<Cpu, Steps<7>>>;
  Ended const whole = run(Policies{}, fake::device());
  for (std::uint64_t const step : {1U, 6U, 7U, 8U, 15U}) {
    CAPTURE(step);
    Ended const resumed = run(Policies{}, fake::device(), &whole.after_step.at(step));
    CHECK(steps_on(resumed, c10::kCPU) == (step < 7 ? 7 - step : 0));
    CHECK(same_bits(resumed.tensors, whole.tensors));
    CHECK(resumed.report.train_loss == whole.report.train_loss);
    std::string const apart = differing(resumed.after_step.at(18).run, whole.after_step.at(18).run);
    CHECK(apart == "");
  }
  CHECK(fake::complaints().empty());
}

/// Runs in one checkpoint folder, each with other limits and another recipe or device.
template <class... Ps>
std::map<std::string, at::Tensor> in_folder(std::filesystem::path const& path, c10::Device device,
                                            std::uint64_t steps, Ps... policies) {
  auto const module = std::make_shared<Mlp>(Mlp::Shape{.dropout = 0.3, .norm = true});
  frugal::Trainer trainer{
      module,
      frugal::CrossEntropy{},
      frugal::Settings{.run_dir = path, .epochs = 2, .steps = steps, .seed = 5, .device = device},
      frugal::Optimize<frugal::AdamW>{.lr = 1e-2},
      frugal::Checkpoint<frugal::Every<100>>{},
      policies...};
  frugal::TensorDataset train(samples(43), {.batch = 4, .shuffle = true});
  static_cast<void>(trainer.fit(train));
  module->to(c10::kCPU);
  return tensors_of(*module);
}

TEST_CASE("a checkpoint from either side of the move resumes, dropout included") {
  TemporaryFolder folder;
  StartOn<Cpu, Steps<6>> const start;
  auto const whole = in_folder(folder.path() / "whole", fake::device(), 22, start);
  for (std::uint64_t const step : {3U, 6U, 9U}) {
    CAPTURE(step);
    auto const path = folder.path() / std::to_string(step);
    in_folder(path, fake::device(), step, start);
    CHECK(same_bits(in_folder(path, fake::device(), 22, start), whole));
  }
  // Dropout drew from the device's generator, so this differs from the run that stays on the CPU.
  CHECK_FALSE(same_bits(in_folder(folder.path() / "cpu", c10::kCPU, 22), whole));
}

TEST_CASE("a run from the CPU alone resumes with StartOn on a device") {
  TemporaryFolder folder;
  StartOn<Cpu, Steps<6>> const start;
  auto const whole = in_folder(folder.path() / "whole", fake::device(), 22, start);
  auto const path = folder.path() / "cpu";
  in_folder(path, c10::kCPU, 3);
  CHECK(same_bits(in_folder(path, fake::device(), 22, start), whole));
}

TEST_CASE("Rollback returns to before the move, and the run stays on the device") {
  // The loss of the ninth window is NaN; the last good state is of the third step.
  struct Spoilt {
    std::shared_ptr<int> calls = std::make_shared<int>(0);
    frugal::Loss operator()(std::shared_ptr<Mlp>& net, frugal::Batch const& batch) const {
      at::Tensor const loss = at::cross_entropy_loss(net->forward(batch.data), batch.target);
      bool const bad = at::GradMode::is_enabled() && ++*calls == 9;
      return {.value = bad ? loss * std::numeric_limits<double>::quiet_NaN() : loss};
    }
  };
  auto const fit = [](c10::Device device, auto const&... policies) {
    auto const module = std::make_shared<Mlp>(Mlp::Shape{.norm = true});
    frugal::Trainer trainer{module,
                            Spoilt{},
                            frugal::Settings{.epochs = 2, .device = device},
                            frugal::Optimize<frugal::AdamW>{.lr = 1e-2},
                            frugal::Log<frugal::Every<1>>{.path = "/dev/null"},
                            frugal::Rollback<frugal::Every<100>>{},
                            policies...};
    frugal::TensorDataset train(samples(43), {.batch = 4});
    auto const report = trainer.fit(train);
    CHECK(report.steps == 21);
    CHECK(module->first->weight.device() == device);
    module->to(c10::kCPU);
    return tensors_of(*module);
  };
  auto const stays = fit(c10::kCPU);
  CHECK(same_bits(fit(fake::device(), StartOn<Cpu, Steps<5>>{}), stays));
  CHECK(fake::complaints().empty());
}

TEST_CASE("FP16's scale and its flags move with the run") {
  using Policies = frugal::list<frugal::Optimize<frugal::AdamW>, frugal::Precision<frugal::FP16>,
                                StartOn<Cpu, Steps<5>>>;
  Ended const whole = run(Policies{}, fake::device());
  CHECK(whole.report.steps + whole.report.non_finite_windows == 33);
  CHECK(whole.after_step.at(4).run.values.at("policies/Precision/scale") ==
        whole.after_step.at(9).run.values.at("policies/Precision/scale"));
  Ended const resumed = run(Policies{}, fake::device(), &whole.after_step.at(9));
  CHECK(same_bits(resumed.tensors, whole.tensors));
  CHECK(fake::complaints().empty());
}

TEST_CASE("ClipNorm clips on the CPU, and on the device once the run is there") {
  // The factor is a double in host memory and a float on a device, so the last bits differ.
  using Policies = frugal::list<frugal::Optimize<frugal::SGD>, frugal::ClipNorm<0.5>>;
  Ended const stays = run(Policies{}, c10::kCPU);
  Ended const moved =
      run(frugal::concat<Policies, frugal::list<StartOn<Cpu, Steps<5>>>>{}, fake::device());
  for (auto const& [name, tensor] : stays.tensors) {
    CAPTURE(name);
    CHECK(distance(moved.tensors.at(name), tensor) < 1e-4);
  }
  CHECK(fake::complaints().empty());
}

TEST_CASE("a run that ends before it moves reports that, and a move is an event of the log") {
  TemporaryFolder folder;
  auto const fit = [&](std::uint64_t steps) {
    frugal::Trainer trainer{std::make_shared<Mlp>(),
                            frugal::CrossEntropy{},
                            frugal::Settings{.steps = steps, .device = fake::device()},
                            frugal::Optimize<frugal::AdamW>{},
                            frugal::Log<frugal::Every<1>>{.path = folder.path() / "log"},
                            StartOn<Cpu, Steps<4>>{}};
    frugal::TensorDataset train(samples(43), {.batch = 4});
    return trainer.fit(train);
  };
  auto const report = fit(4);
  REQUIRE(report.warnings.size() == 1);
  CHECK(report.warnings[0].find("ended before it moved to fake:0") != std::string::npos);
  fit(6);
  std::ifstream file(folder.path() / "log");
  std::string const text(std::istreambuf_iterator<char>(file), {});
  CHECK(text.find("\"event\":\"move\",\"step\":4") != std::string::npos);
  CHECK(text.find("\"to\":\"fake:0\"") != std::string::npos);
}

}  // namespace frugal_test::device_start_on
