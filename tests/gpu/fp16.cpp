// SPDX-License-Identifier: Apache-2.0
// Case 2: on a GPU FP16 skips the windows that overflow and scales like torch.amp, also replayed.
#include <doctest/doctest.h>

#include <frugal/frugal.hpp>

#include "counting_capture.hpp"
#include "support/running.hpp"

namespace frugal_test::gpu_fp16 {

using namespace frugal_test::gpu;
using namespace frugal_test::support;
using frugal::AdamW;
using frugal::Optimize;

constexpr std::int64_t batch = 32;
constexpr std::uint64_t epochs = 12;  // about forty windows overflow before the first good one
constexpr int warm_up = 3;
// Exact in float and in double: the precision that a float loses of 1e18 is no part of this test.
constexpr float first_scale = 1e18F;
constexpr std::int64_t growth_interval = 4;
constexpr std::size_t lag = 2;  // windows after which the host reads a flag of the device

/// The state that a step finds after its window.
struct Found {
  std::uint64_t step;
  std::uint64_t skipped;
  double scale;
  std::int64_t good_steps;
};

/// Reads the scale after every step, as a checkpoint would save it.
struct Scales {
  struct kind : frugal::optional_kind {
    static constexpr std::string_view name = "test.Scales";
  };
  using listens = frugal::list<frugal::on::step>;
  using after = everything;
  std::vector<Found>* found = nullptr;

  class State {
   public:
    using transient = void;
    explicit State(Scales const& settings) : found_(settings.found) {}
    void on_step(frugal::Step& phase) {
      frugal::StateDict memory;
      frugal::StateWriter writer(memory);
      phase.persist(writer);
      writer.finish();
      found_->push_back(
          {phase.counters().step, phase.counters().non_finite_windows,
           std::get<double>(memory.values.at("policies/Precision/scale")),
           std::get<std::int64_t>(memory.values.at("policies/Precision/good_steps"))});
    }

   private:
    std::vector<Found>* found_;
  };
};

struct Ran {
  std::map<std::string, at::Tensor> tensors;
  frugal::Report report;
  std::vector<Found> found;
};

template <class... Policies>
Ran run(Policies const&... policies) {
  auto const module = std::make_shared<Mlp>(
      Mlp::Shape{.features = 16, .hidden = 32, .classes = 8, .dropout = 0.25});
  Ran ran;
  frugal::Trainer trainer{
      module,
      frugal::CrossEntropy{},
      frugal::Settings{.epochs = epochs, .device = c10::Device(c10::kCUDA, 0)},
      Optimize<AdamW>{.lr = 0.01},
      frugal::Precision<frugal::FP16>{
          .scaling = {.initial = first_scale, .growth_interval = growth_interval}},
      Scales{&ran.found},
      policies...};
  ran.report = trainer.fit(
      frugal::TensorDataset(samples(16 * batch, 91, 16, 8), {.batch = batch, .shuffle = true}));
  ran.tensors = tensors_of(*module);
  return ran;
}

/// Which windows overflowed, in order, except for those whose flags the host has not read. A window
/// is no step if the one two windows before overflowed.
std::vector<bool> overflows_of(Ran const& ran) {
  std::vector<bool> no_step;
  std::uint64_t skipped = 0;
  for (Found const& each : ran.found) {
    for (; skipped < each.skipped; ++skipped) no_step.push_back(true);
    no_step.push_back(false);
  }
  for (; skipped < ran.report.non_finite_windows; ++skipped) no_step.push_back(true);
  REQUIRE(no_step.size() > lag);
  // The first windows have no flag yet.
  for (std::size_t i = 0; i < lag; ++i) CHECK_FALSE(no_step[i]);
  no_step.erase(no_step.begin(), no_step.begin() + static_cast<std::ptrdiff_t>(lag));
  return no_step;
}

/// torch.amp's rule: halved by an overflow, doubled after a given number of consecutive good
/// windows.
void check_scales(Ran const& ran, std::uint64_t windows) {
  CHECK(ran.report.non_finite_windows > 5);
  CHECK(ran.report.steps + ran.report.non_finite_windows == windows);
  CHECK(ran.found.size() == ran.report.steps);
  std::vector<bool> const overflows = overflows_of(ran);
  REQUIRE(overflows.size() == windows - lag);

  struct Scale {
    float value;
    std::int64_t good_steps;
  };
  std::vector<Scale> expected;  // after each window
  Scale now{first_scale, 0};
  int halved = 0;
  int doubled = 0;
  for (bool const overflow : overflows) {
    if (overflow) {
      now = {now.value * 0.5F, 0};
      ++halved;
    } else if (++now.good_steps == growth_interval) {
      now = {now.value * 2.0F, 0};
      ++doubled;
    }
    expected.push_back(now);
  }
  CHECK(halved > 5);
  CHECK(doubled > 0);
  int compared = 0;
  for (Found const& each : ran.found) {
    std::uint64_t const window = each.step + each.skipped;  // from 1 on
    if (window > expected.size()) continue;
    CAPTURE(window);
    CHECK(each.scale == static_cast<double>(expected[window - 1].value));
    CHECK(each.good_steps == expected[window - 1].good_steps);
    ++compared;
  }
  CHECK(compared > growth_interval);
}

template <class... Policies>
void check_all(std::uint64_t windows, int captures, int replays, Policies const&... policies) {
  auto const idle = std::make_shared<CaptureLog>();
  auto const log = std::make_shared<CaptureLog>();
  Ran const plain = run(policies...);
  Ran const eager = run(policies..., counted(idle, never));
  Ran const graph = run(policies..., counted(log, warm_up));
  {
    INFO("without CudaGraph");
    check_scales(plain, windows);
  }
  {
    INFO("with windows that are all eager");
    check_scales(eager, windows);
  }
  {
    INFO("replayed");
    check_scales(graph, windows);
  }
  CHECK(idle->captures == 0);
  CHECK(log->captures == captures);
  CHECK(log->broken_off == 0);
  CHECK(log->replays == replays);
  CHECK(lines_with("CudaGraph", graph.report.warnings) == 0);
  // A replayed run also has the bits of one with the rate in a tensor; a run without CudaGraph does not
  // have it there.
  CHECK(same_bits(eager.tensors, graph.tensors));
  CHECK(eager.report.train_loss == graph.report.train_loss);
  CHECK(eager.report.steps == graph.report.steps);
  CHECK(eager.report.non_finite_windows == graph.report.non_finite_windows);
}

TEST_CASE("one micro-batch: skips, scales and bits") {
  constexpr int windows = 16 * epochs;
  check_all(windows, 1, windows - warm_up);
}

TEST_CASE("two micro-batches and ClipNorm: skips, scales and bits") {
  constexpr int windows = 8 * epochs;
  check_all(windows, 3, (windows - warm_up) * 3, frugal::Accumulate<2>{}, frugal::ClipNorm<0.3>{});
}

}  // namespace frugal_test::gpu_fp16
