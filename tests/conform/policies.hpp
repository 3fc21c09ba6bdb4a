// SPDX-License-Identifier: Apache-2.0
// The list of all policies. One line here for a new policy tests its resume, its events and its
// pairing with every other.
#pragma once

#include <frugal/frugal.hpp>
#include <frugal/report.hpp>

#include "support/running.hpp"

namespace frugal_test::conform {

/// The policies of one kind; an empty recipe stands for none of them.
template <class... Choices>
using Axis = frugal::list<Choices...>;
using Without = frugal::Recipe<>;

/// One axis for each kind, with the policies of that kind. Without CudaGraph: these tests listen to
/// single losses and updates, which a replay does not call. CudaGraph's own test covers resume and
/// pairing.
using Axes = frugal::list<
    Axis<frugal::Optimize<frugal::AdamW>, frugal::Optimize<frugal::Adam>,
         frugal::Optimize<frugal::SGD>, frugal::Optimize<frugal::Adagrad>,
         frugal::Optimize<frugal::Any>, frugal::Optimize<frugal::Nothing>>,
    Axis<Without, frugal::Schedule<frugal::Warmup<3>, frugal::Cosine>,
         frugal::Schedule<frugal::Plateau<0.5, frugal::Patience<1>>>>,
    Axis<Without, frugal::Validate<>, frugal::Validate<frugal::Every<2>, frugal::Accuracy>>,
    Axis<frugal::Precision<frugal::FP32>, frugal::Precision<frugal::BF16>,
         frugal::Precision<frugal::FP16>>,
    Axis<frugal::Accumulate<1>, frugal::Accumulate<3>, frugal::Accumulate<frugal::Auto>,
         frugal::Recipe<frugal::Accumulate<frugal::Auto>, frugal::AutoBatch>>,
    Axis<Without, frugal::ClipNorm<0.5>, frugal::ClipValue<0.1>, frugal::ClipAdaptive<0.1>>,
    Axis<Without, frugal::EarlyStop<frugal::Patience<50>>>,
    Axis<Without, frugal::Log<frugal::Every<2>>,
         frugal::Recipe<frugal::Log<frugal::Every<2>>, frugal::HtmlReport<>>>,
    // One choice of several policies: they only watch, and each axis makes every recipe larger.
    Axis<Without, frugal::Recipe<frugal::CostMeter, frugal::Budget<frugal::Hours<100>>>,
         frugal::Recipe<frugal::Csv<frugal::Every<2>>, frugal::MlperfLog<frugal::Every<3>>,
                        frugal::Prometheus<frugal::Every<2>>>,
         frugal::Profile<frugal::Seconds<1>, frugal::PerEpoch>>,
    Axis<Without, frugal::Progress<>>,  //
    Axis<Without, frugal::KeepHostMemory>, Axis<Without, frugal::FlushDenormals>,
    Axis<Without, frugal::Checkpoint<frugal::Every<5>>,
         frugal::Checkpoint<frugal::Every<1, frugal::Epoch>, frugal::Async, frugal::KeepBest<>>,
         frugal::Recipe<frugal::Checkpoint<frugal::Every<7>>, frugal::Spot<frugal::SigtermSave>>>,
    Axis<Without, frugal::Rollback<frugal::Every<3>>>, Axis<Without, frugal::SkipNonFinite>,
    Axis<Without, frugal::DryRun<>>,
    Axis<Without, frugal::Recompute<frugal::Segments<2>>,
         frugal::Recompute<frugal::Modules<frugal::OfType<torch::nn::Dropout>>>>,
    Axis<Without, frugal::Activations<frugal::BF16>, frugal::Activations<frugal::Offload>>,
    Axis<Without, frugal::Average<frugal::Ema<0.9>>,
         frugal::Average<frugal::Swa<frugal::From<4>, frugal::Every<3>>>>,
    // Neither has another device here; tests/device has one, and moves all of these.
    Axis<Without, frugal::StartOn<frugal::Cpu, frugal::Steps<5>>>,
    Axis<Without, frugal::DevicePrefetch<>>, Axis<Without, frugal::StopAfter<frugal::Hours<100>>>,
    Axis<Without, frugal::Throughput<frugal::Every<4>>>,
    Axis<Without, frugal::TrainMetrics<frugal::Every<3>, frugal::Accuracy>>>;

/// Gives a policy the run-time settings that it requires, and keeps it quiet.
template <class P>
void prepare(P& policy) {
  if constexpr (std::same_as<P, frugal::Optimize<frugal::Any>>) {
    policy.make = [](std::vector<at::Tensor> parameters) {
      return std::make_unique<torch::optim::RMSprop>(std::move(parameters), 1e-2);
    };
  } else if constexpr (requires { policy.line_seconds; }) {
    policy.out = nullptr;
  } else if constexpr (std::same_as<P, frugal::DryRun<>>) {
    policy.out = nullptr;
  } else if constexpr (std::same_as<P, frugal::Accumulate<frugal::Auto>>) {
    policy.samples = 3;
  } else if constexpr (std::same_as<P, frugal::AutoBatch>) {
    policy.limit = std::int64_t{64} << 20;
  } else if constexpr (requires { policy.momentum; }) {
    policy.momentum = 0.9;
  }
}

/// Prepares every policy of a trainer that is in a recipe.
template <class Trainer, class... Ps>
void prepare_all(Trainer& trainer, frugal::list<Ps...>) {
  (prepare(trainer.template policy<typename Ps::kind>()), ...);
  // AutoBatch must find the size itself.
  if constexpr ((std::same_as<Ps, frugal::AutoBatch> || ...)) {
    trainer.template policy<frugal::kinds::accumulate>().samples = 0;
  }
}

}  // namespace frugal_test::conform
