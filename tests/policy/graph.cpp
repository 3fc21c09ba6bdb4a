// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <frugal/policy/activations.hpp>
#include <frugal/policy/average.hpp>
#include <frugal/policy/graph.hpp>
#include <frugal/policy/optimize.hpp>
#include <frugal/policy/schedule.hpp>
#include <frugal/trainer.hpp>

#include "support/recorder.hpp"
#include "support/running.hpp"

namespace frugal_test::policy_graph {

using namespace frugal_test::support;
using namespace frugal::literals;
using frugal::Accumulate;
using frugal::AdamW;
using frugal::Graph;
using frugal::Optimize;
using frugal::Resident;
using frugal::WholeStep;
namespace k = frugal::kinds;

using Replayed = Graph<WholeStep, Recorder>;

/// Weights and averages at the end of a run, and its report.
struct Ran {
  std::map<std::string, at::Tensor> tensors;
  frugal::Report report;
};

template <class... Policies>
Ran run(Mlp::Shape const& shape, frugal::Batch const& data, Policies const&... policies) {
  auto const module = std::make_shared<Mlp>(shape);
  frugal::Trainer trainer{module, frugal::CrossEntropy{}, frugal::Settings{.epochs = 3},
                          policies...};
  Ran ran;
  ran.report = trainer.fit(Resident(data, {.batch = 4, .shuffle = true}));
  ran.tensors = tensors_of(*module);
  using Policies_ = typename decltype(trainer)::policies;
  if constexpr (frugal::detail::has<k::average, Policies_>) {
    for (auto const& [name, tensor] : trainer.template policy<k::average>().weights().tensors) {
      ran.tensors.emplace("average/" + name, tensor);
    }
  }
  return ran;
}

TEST_CASE("a replayed run has the weights and averages of an eager one, bit for bit") {
  auto const both = [](auto accumulate) {
    auto const with = [&](auto... execution) {
      return run(Mlp::Shape{.dropout = 0.5, .norm = true}, samples(64), accumulate,
                 Optimize<AdamW>{.lr = 0.01},
                 frugal::Schedule<frugal::Warmup<5>, frugal::Cosine>{},
                 frugal::Average<frugal::Ema<0.9_r>>{}, execution...);
    };
    RecorderLog log;
    Ran const eager = with();
    Ran const replayed = with(Replayed{.backend = {.log = &log}});
    CHECK(same_bits(eager.tensors, replayed.tensors));
    CHECK(eager.report.train_loss == replayed.report.train_loss);
    CHECK(replayed.report.advice.empty());
    return log;
  };
  RecorderLog const one = both(Accumulate<1>{});
  CHECK(one.count("side stream") == 3);
  CHECK(one.count("capture") == 1);
  CHECK(one.count("replay") == 48 - 3);
  RecorderLog const four = both(Accumulate<4>{});
  CHECK(four.count("side stream") == 3);
  CHECK(four.count("capture") == 3);
  CHECK(four.count("replay") == (12 - 3) * 5);
}

TEST_CASE("with every part of a step captured a run has the bits of one that never captures") {
  // Clipping computes its factor where the gradients are, as it does on a device; so what it is
  // held against is a run of the same recipe whose windows are all eager.
  auto const same = [](auto... policies) {
    auto const with = [&](int warm_up, RecorderLog& log) {
      return run(Mlp::Shape{.dropout = 0.25, .norm = true}, samples(62), policies...,
                 frugal::Schedule<frugal::Warmup<5>, frugal::Cosine>{},
                 frugal::Average<frugal::Ema<0.9_r>>{},
                 Replayed{.warm_up = warm_up, .backend = {.log = &log}});
    };
    RecorderLog never, once;
    Ran const eager = with(1000, never);
    Ran const replayed = with(2, once);
    CHECK(never.count("capture") == 0);
    CHECK(once.count("capture") >= 1);
    CHECK(same_bits(eager.tensors, replayed.tensors));
    CHECK(eager.report.train_loss == replayed.report.train_loss);
  };
  same(Optimize<AdamW>{.lr = 0.01}, frugal::ClipNorm<0.3_r>{});
  same(Optimize<AdamW>{.lr = 0.01}, frugal::ClipNorm<0.3_r>{}, Accumulate<4>{});
  same(Optimize<frugal::Adam>{.lr = 0.01, .amsgrad = true}, frugal::ClipValue<0.05_r>{});
  same(Optimize<frugal::SGD>{.lr = 0.1, .momentum = 0.9}, frugal::ClipAdaptive<0.1_r>{},
       Accumulate<2>{});
  same(Optimize<frugal::Adagrad>{.lr = 0.05, .lr_decay = 0.1});
  same(Optimize<AdamW>{.groups = {frugal::no_decay_for_biases_and_norms()}},
       frugal::Precision<frugal::BF16>{}, Accumulate<2>{});
  same(Optimize<AdamW>{.lr = 0.01}, frugal::Precision<frugal::FP16>{}, frugal::ClipNorm<0.3_r>{},
       Accumulate<2>{});
  same(Optimize<AdamW>{.lr = 0.01}, frugal::Activations<frugal::Half>{});
}

}  // namespace frugal_test::policy_graph
