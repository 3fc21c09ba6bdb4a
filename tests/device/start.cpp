// SPDX-License-Identifier: Apache-2.0
// Start<Cpu> with a second device: a run that moves has the bits of one that stays.
#include <doctest/doctest.h>

#include <frugal/policy/start.hpp>

#include "conform/policies.hpp"
#include "support/fake_device.hpp"
#include "support/files.hpp"
#include "support/running.hpp"

namespace frugal_test::device_start {

using namespace frugal_test::support;
using namespace frugal_test::conform;
using frugal::Cpu;
using frugal::Epochs;
using frugal::Start;
using frugal::Steps;
namespace k = frugal::kinds;

struct Ended {
  frugal::Report report;
  std::map<std::string, at::Tensor> tensors;
  Seen seen;
  std::map<std::uint64_t, Frozen> after_step;
  std::vector<c10::DeviceType> placed;  ///< the module's device after each step
  std::string state;                    ///< paths of tensors that are not on the module's device
};

/// Names the tensors of a run's state that do not lie where it is told.
std::string elsewhere(frugal::Memory const& memory, c10::Device device) {
  std::string text;
  for (auto const& [path, tensor] : memory.tensors) {
    // An optimizer of torch keeps its state in a blob of bytes, and Rollback in host memory.
    if (path.ends_with("torch_optim") || path.starts_with("policies/Rollback")) continue;
    if (tensor.device() != device) text += path + " ";
  }
  return text;
}

/// Three epochs of 11 batches on a device; the CPU's bits are what the fake device has to have.
template <class... Ps>
Ended run(frugal::list<Ps...> policies, c10::Device device, Frozen const* from = nullptr,
          double dropout = 0) {
  Ended ended;
  TemporaryFolder folder;
  auto const module = std::make_shared<Mlp>(Mlp::Shape{.dropout = dropout, .norm = true});
  frugal::Trainer<std::shared_ptr<Mlp>, frugal::CrossEntropy, Ps..., Spy, Resume> trainer{
      module,
      {},
      {.run = folder.path(), .epochs = 3, .seed = 7, .device = device},
      Spy{.seen = &ended.seen,
          .each_step =
              [&](frugal::Counters const&) {
                ended.placed.push_back(module->first->weight.device().type());
              }},
      Resume{.from = from, .after_step = &ended.after_step}};
  prepare_all(trainer, policies);
  frugal::Resident train(samples(43), {.batch = 4, .shuffle = true});
  frugal::Resident valid(samples(15, 92), {.batch = 4});
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

/// A run that moves after five steps, and one that moves after an epoch, against one on the CPU.
template <class... Ps>
void moves(frugal::list<Ps...> policies) {
  CAPTURE(std::string(frugal::detail::type_name<frugal::list<Ps...>>()));
  Ended const stays = run(policies, c10::kCPU);
  Ended const moved = run(frugal::list<Ps..., Start<Cpu, Steps<5>>>{}, fake::device());
  CHECK(steps_on(moved, c10::kCPU) == 5);
  CHECK(steps_on(moved, fake::type) == stays.placed.size() - 5);
  CHECK(moved.state.empty());
  compare(stays, moved);
  CHECK(fake::complaints().empty());
  // Nothing of the host is left in the state: what a later step is given is on the device.
  Ended const epoch = run(frugal::list<Ps..., Start<Cpu>>{}, fake::device());
  CHECK(steps_on(epoch, c10::kCPU) == stays.placed.size() / 3);
  compare(stays, epoch);
  CHECK(fake::complaints().empty());
}

TEST_CASE("a run that moves has the bits of one that stays: AdamW, windows, clipping, averages") {
  moves(frugal::list<frugal::Optimize<frugal::AdamW>, frugal::Accumulate<3>,
                     frugal::Schedule<frugal::Warmup<3>, frugal::Cosine>,
                     frugal::Validate<frugal::Every<2>, frugal::Accuracy>,
                     frugal::EarlyStop<frugal::Patience<50>>, frugal::Log<frugal::Every<2>>,
                     frugal::Progress<>, frugal::Smoke<>, frugal::ClipValue<0.1_r>,
                     frugal::Average<frugal::Ema<0.9_r>>, frugal::Checkpoint<frugal::Every<5>>,
                     frugal::Throughput<frugal::Every<4>>>{});
}

TEST_CASE("a run that moves has the bits of one that stays: SGD, plateau, Rollback, Async") {
  moves(frugal::list<
        frugal::Optimize<frugal::SGD>,
        frugal::Schedule<frugal::Plateau<0.5_r, frugal::Patience<1>>>,
        frugal::Validate<frugal::Every<2>>, frugal::Rollback<frugal::Every<3>>,
        frugal::Average<frugal::Swa<frugal::From<4>, frugal::Every<3>>>,
        frugal::Recompute<frugal::Segments<2>>,
        frugal::Checkpoint<frugal::Every<1, frugal::Epoch>, frugal::Async, frugal::KeepBest<>>>{});
}

TEST_CASE("a run that moves has the bits of one that stays: Adam, Adagrad, torch's optimizers") {
  moves(frugal::list<frugal::Optimize<frugal::Adam>, frugal::Validate<>,
                     frugal::Audit<frugal::BitExact>>{});
  moves(frugal::list<frugal::Optimize<frugal::Adagrad>, frugal::KeepMemory,
                     frugal::Activations<frugal::Offload>>{});
  moves(frugal::list<frugal::Optimize<frugal::Any>, frugal::FlushDenormals>{});
}

}  // namespace frugal_test::device_start
