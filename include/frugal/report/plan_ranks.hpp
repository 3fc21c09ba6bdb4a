// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>
#include <c10/core/Device.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

#include <frugal/base/gradient_exchange.hpp>
#include <frugal/core/libtorch/layer_tensors.hpp>
#include <frugal/core/libtorch/low_rank.hpp>
#include <frugal/core/libtorch/modes.hpp>
#include <frugal/core/libtorch/parameters.hpp>
#include <frugal/core/run/call_in_progress.hpp>
#include <frugal/core/run/recipe_traits.hpp>
#include <frugal/core/source/batch.hpp>
#include <frugal/error.hpp>
#include <frugal/policy/kinds.hpp>
#include <frugal/report/plan/money.hpp>
#include <frugal/report/plan/rank_plan.hpp>
#include <frugal/report/plan_memory.hpp>
#include <frugal/trainer.hpp>

namespace frugal {

/// Seconds of forward and backward of one micro-batch in this process, the median of `rounds` after
/// one that is not counted, on the trainer's device and under all policies' guards. Sends nothing,
/// trains nothing, and leaves weights, gradients and buffers as they were; random numbers are drawn.
///
/// Several processes of one machine share its memory and caches: call it in all of them at once.
///
/// batch   as the training source gives it
/// Errors  SettingsError for less than one round; DeviceError for a module that is not on the
///         trainer's device.
template <class Trainer, class B>
double measure_micro_batch(Trainer& trainer, B const& batch, int rounds = 5) {
  using Policies = typename Trainer::policies;
  using Module = std::remove_reference_t<decltype(trainer.module())>;
  using Objective = std::remove_reference_t<decltype(trainer.objective())>;
  using Context = typename detail::context_of<Module, Policies>::type;
  static_assert(ObjectiveFor<Objective, Module, B>,
                "frugal: the objective cannot be called with (module, batch). Give "
                "measure_micro_batch a batch as the training source gives it.");
  if (rounds < 1) {
    throw SettingsError({.what = "rounds is " + std::to_string(rounds),
                         .where = "measure_micro_batch",
                         .why = "a median of no times has no value",
                         .fix = "Take 1 round or more."});
  }
  trainer.adapt();
  Settings const settings = trainer.resolved_settings();
  torch::nn::Module& root = base_module(trainer.module());
  for (at::Tensor const& tensor : root.parameters()) {
    if (tensor.device() == settings.device) continue;
    throw DeviceError({.what = "the module is on " + tensor.device().str() +
                               ", and the trainer's device is " + settings.device.str(),
                       .where = "measure_micro_batch",
                       .why = "fit moves the module, and a measurement does not",
                       .fix = "Call module->to(device) before, or measure after a fit."});
  }
  detail::CallInProgress const call(
      {.name = "measure_micro_batch", .module = &root, .device = settings.device});
  detail::KeepModes const modes(root);
  root.train();
  using Clock = std::chrono::steady_clock;
  std::vector<double> seconds;
  detail::undo_passes(root, [&] {
    B here = batch;
    batch_to(here, settings.device);
    detail::PlannedPasses<Context, Objective> run(trainer.module(), trainer.objective(), settings,
                                                  detail::TrainerAccess::values_of(trainer));
    auto const wait = [&] {
      if (settings.device.is_cpu()) return;
      c10::impl::VirtualGuardImpl const guard(settings.device.type());
      guard.synchronizeDevice(guard.getDevice().index());
    };
    for (int round = 0; round <= rounds; ++round) {
      wait();
      Clock::time_point const begun = Clock::now();
      run.passes(here, settings.device, 1, [] { return std::int64_t{0}; });
      wait();
      std::chrono::duration<double> const taken = Clock::now() - begun;
      if (round > 0) seconds.push_back(taken.count());  // the first one allocates
    }
  });
  auto const middle = seconds.begin() + static_cast<std::ptrdiff_t>(seconds.size() / 2);
  std::nth_element(seconds.begin(), middle, seconds.end());
  return *middle;
}

/// plan::plan_ranks for a trainer: the micro-batches of a step are Accumulate<N>'s, the gradients
/// are counted, a micro-batch is measured (measure_micro_batch), and the way of the exchange is that of
/// its Replicate. What `given` has is kept, but for `link`, and, in a recipe with Replicate, `sum`, `bf16`,
/// `shards_states`, `power_sgd`, `local_steps` and `bucket`.
///
/// batch   as the training source gives it
/// link    measure_link's, or a data sheet's (tcp_link)
/// given   what the trainer does not know: the price, the runs, the update; the steps, unless
///         Settings::steps has them
/// Errors  those of plan::plan_ranks and measure_micro_batch.
template <class Trainer, class B>
plan::RankPlan plan_ranks(Trainer& trainer, B const& batch, LinkSpeed const& link,
                          plan::RankInputs given = {}) {
  given.link = link;
  if (given.micro_batches == 1) {
    given.micro_batches = static_cast<double>(detail::TrainerAccess::facts_of(trainer).batches);
  }
  if (given.steps == 1 && trainer.settings().steps) {
    given.steps = static_cast<double>(*trainer.settings().steps);
  }
  if (given.gradients == plan::Gigabytes(0)) {
    given.gradients =
        plan::gigabytes(static_cast<double>(detail::memory_at_rest(trainer).gradients));
  }
  if (given.micro_batch == plan::Seconds(0)) {
    given.micro_batch = plan::Seconds(measure_micro_batch(trainer, batch));
  }
  auto const& replicate = trainer.template policy<kinds::replicate>();
  GradientExchange exchange;
  if constexpr (requires { replicate.exchange(); }) {
    exchange = replicate.exchange();
    if (exchange.scatters) {
      throw SettingsError({.what = "the recipe has Shard<States, Grads>",
                           .where = "plan_ranks",
                           .why = "its exchange of each micro-batch is not in the model",
                           .fix = "Plan with Shard<States>, or with none."});
    }
    given.sum = exchange.sum;
    given.bf16 = exchange.bf16;
    given.shards_states = exchange.shards_states;
    given.power_sgd = exchange.power_sgd != 0;
    given.local_steps = exchange.local_steps;
    given.bucket = plan::gigabytes(static_cast<double>(exchange.bucket_bytes));
  }
  if (given.low_rank == plan::Gigabytes(0)) {
    int const columns = exchange.power_sgd != 0 ? exchange.power_sgd : 4;
    double bytes = 0;
    for (at::Tensor const& each : detail::each_once(base_module(trainer.module()).parameters())) {
      if (each.requires_grad())
        bytes += detail::LowRank::bytes(each, columns, exchange.compression_rate);
    }
    given.low_rank = plan::gigabytes(bytes);
  }
  return plan::plan_ranks(given);
}

}  // namespace frugal
