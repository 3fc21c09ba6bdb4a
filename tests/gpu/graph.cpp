// SPDX-License-Identifier: Apache-2.0
// Case 1: on a GPU a captured and replayed run has the bits of one that never captures.
#include <doctest/doctest.h>

#include <frugal/frugal.hpp>

#include "counting_capture.hpp"
#include "support/running.hpp"

namespace frugal_test::gpu_graph {

using namespace frugal_test::gpu;
using namespace frugal_test::support;
using frugal::Accumulate;
using frugal::AdamW;
using frugal::Optimize;
using frugal::TensorDataset;
using Ema = frugal::Average<frugal::Ema<0.9>>;
using Bf16 = frugal::Precision<frugal::BF16>;
using WarmUp = frugal::Schedule<frugal::Warmup<5>, frugal::Cosine>;

constexpr std::int64_t features = 16;
constexpr std::int64_t classes = 8;
constexpr std::int64_t batch = 32;
constexpr std::uint64_t epochs = 3;
constexpr int warm_up = 3;

struct Ran {
  std::map<std::string, at::Tensor> tensors;  // parameters, buffers and averages
  frugal::Report report;
  CaptureLog log;
};

template <class... Policies>
Ran run(std::int64_t rows, int windows_of_warm_up, Policies const&... policies) {
  auto const module = std::make_shared<Mlp>(Mlp::Shape{
      .features = features, .hidden = 32, .classes = classes, .dropout = 0.25, .norm = true});
  auto const log = std::make_shared<CaptureLog>();
  frugal::Trainer trainer{module, frugal::CrossEntropy{},
                          frugal::Settings{.epochs = epochs, .device = c10::Device(c10::kCUDA, 0)},
                          policies..., counted(log, windows_of_warm_up)};
  Ran ran;
  ran.report = trainer.fit(
      TensorDataset(samples(rows, 91, features, classes), {.batch = batch, .shuffle = true}),
      TensorDataset(samples(10, 92, features, classes)));
  ran.tensors = tensors_of(*module);
  using All = typename decltype(trainer)::policies;
  if constexpr (frugal::detail::has<frugal::kinds::average, All>) {
    for (auto const& [name, tensor] :
         trainer.template policy<frugal::kinds::average>().weights().tensors) {
      ran.tensors.emplace("average/" + name, tensor);
    }
  }
  ran.log = *log;
  return ran;
}

void check_same_reports(frugal::Report const& a, frugal::Report const& b) {
  CHECK(a.train_loss == b.train_loss);
  CHECK(a.steps == b.steps);
  CHECK(a.samples == b.samples);
  CHECK(a.non_finite_windows == b.non_finite_windows);
  REQUIRE(a.validations.size() == epochs);
  REQUIRE(b.validations.size() == epochs);
  for (std::size_t i = 0; i < epochs; ++i) {
    CHECK(a.validations[i].metrics["loss"] == b.validations[i].metrics["loss"]);
  }
}

/// The required result of a replayed run.
struct Expected {
  std::uint64_t steps;
  int side_streams;
  int captures;
  int replays;
};

/// Returns the replayed run's advice.
template <class... Policies>
std::vector<std::string> same_as_eager(std::int64_t rows, Expected const& expected,
                                       Policies const&... policies) {
  Ran const eager = run(rows, never, policies...);
  Ran const graph = run(rows, warm_up, policies...);
  CHECK(eager.log.captures == 0);
  CHECK(eager.log.replays == 0);
  CHECK(graph.log.side_streams == expected.side_streams);
  CHECK(graph.log.captures == expected.captures);
  CHECK(graph.log.broken_off == 0);
  CHECK(graph.log.replays == expected.replays);
  CHECK(graph.report.steps == expected.steps);
  check_same_reports(eager.report, graph.report);
  CHECK(eager.tensors.size() == graph.tensors.size());
  for (auto const& [name, tensor] : eager.tensors) {
    INFO(name);
    REQUIRE(graph.tensors.contains(name));
    CHECK(same_bits({{name, tensor}}, {{name, graph.tensors.at(name)}}));
  }
  CHECK(lines_with("cannot be captured", graph.report.warnings) == 0);
  return graph.report.warnings;
}

// One micro-batch: 16 windows per epoch. All after the warm-up are one replay each.
template <class... Policies>
void whole_batches(Policies const&... policies) {
  auto const advice = same_as_eager(
      16 * batch, {.steps = 48, .side_streams = 3, .captures = 1, .replays = 48 - warm_up},
      policies...);
  CHECK(lines_with("CudaGraph", advice) == 0);
}

// Four micro-batches: 4 windows per epoch, of five replays each, from three recordings.
template <class... Policies>
void whole_windows(Policies const&... policies) {
  auto const advice = same_as_eager(
      16 * batch, {.steps = 12, .side_streams = 3, .captures = 3, .replays = (12 - warm_up) * 5},
      Accumulate<4>{}, policies...);
  CHECK(lines_with("CudaGraph", advice) == 0);
}

TEST_CASE("AdamW, ClipNorm, a schedule and an average") {
  whole_batches(Optimize<AdamW>{.lr = 0.01}, frugal::ClipNorm<0.3>{}, Ema{}, WarmUp{});
}

TEST_CASE("amsgrad, ClipValue and BF16") {
  whole_batches(Optimize<AdamW>{.lr = 0.01, .amsgrad = true}, frugal::ClipValue<0.05>{}, Bf16{});
}

TEST_CASE("Adagrad, ClipValue and an average") {
  whole_batches(Optimize<frugal::Adagrad>{.lr = 0.05, .lr_decay = 0.1}, frugal::ClipValue<0.05>{},
                Ema{});
}

TEST_CASE("SGD with momentum and ClipNorm, with a ragged last batch") {
  // A ragged window may be the first of a new shape: it runs as a warm-up.
  auto const advice = same_as_eager(
      16 * batch - 20,
      {.steps = 48, .side_streams = 3 + 3, .captures = 1, .replays = 3 * 15 - warm_up},
      Optimize<frugal::SGD>{.lr = 0.1, .momentum = 0.9}, frugal::ClipNorm<0.3>{});
  REQUIRE(advice.size() == 1);
  CHECK(advice[0] ==
        "CudaGraph: a window of batches [12, 16] Float, [12] Long ran eagerly: the graph is for "
        "[32, 16] Float, [32] Long");
}

TEST_CASE("four micro-batches: AdamW, ClipValue and an average, with a ragged last window") {
  // 14 batches per epoch: 4, 4, 4 and 2, the last with 12 samples.
  auto const advice = same_as_eager(
      14 * batch - 20,
      {.steps = 12, .side_streams = 3, .captures = 3, .replays = (3 * 3 - warm_up) * 5},
      Accumulate<4>{}, Optimize<AdamW>{.lr = 0.01}, frugal::ClipValue<0.05>{}, Ema{});
  REQUIRE(advice.size() == 1);
  CHECK(advice[0].find("of fewer micro-batches") != std::string::npos);
}

TEST_CASE("four micro-batches: amsgrad, ClipNorm and BF16") {
  whole_windows(Optimize<AdamW>{.lr = 0.01, .amsgrad = true}, frugal::ClipNorm<0.3>{}, Bf16{});
}

TEST_CASE("four micro-batches: SGD with momentum, ClipValue and a schedule") {
  whole_windows(Optimize<frugal::SGD>{.lr = 0.1, .momentum = 0.9}, frugal::ClipValue<0.05>{},
                WarmUp{});
}

TEST_CASE("four micro-batches: Adagrad, ClipNorm and an average") {
  whole_windows(Optimize<frugal::Adagrad>{.lr = 0.05, .lr_decay = 0.1}, frugal::ClipNorm<0.3>{},
                Ema{});
}

}  // namespace frugal_test::gpu_graph
