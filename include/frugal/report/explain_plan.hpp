// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <iostream>
#include <optional>
#include <ostream>
#include <type_traits>
#include <utility>

#include <frugal/core/compose/composition.hpp>
#include <frugal/core/libtorch/parameters.hpp>
#include <frugal/core/run/call_in_progress.hpp>
#include <frugal/core/run/recipe_traits.hpp>
#include <frugal/core/run/run_limits.hpp>
#include <frugal/core/source/batch.hpp>
#include <frugal/core/source/range.hpp>
#include <frugal/core/source/source.hpp>
#include <frugal/error.hpp>
#include <frugal/policy/kinds.hpp>
#include <frugal/report/explain.hpp>
#include <frugal/report/plan/money.hpp>
#include <frugal/report/plan/plan.hpp>
#include <frugal/report/plan/recipe_plan.hpp>
#include <frugal/report/plan_inputs.hpp>
#include <frugal/report/plan_memory.hpp>

namespace frugal {

namespace detail {

void explain_memory(RecipeMemory const& memory, std::ostream& out);

/// Seconds of a step: as given, or else as measured by the last fit.
template <class Trainer>
std::optional<double> step_seconds_of(Trainer& trainer, PlanInputs const& given) {
  if (given.step_seconds) return given.step_seconds;
  if constexpr (has<kinds::throughput, typename Trainer::policies>) {
    if (auto const speed = trainer.template policy<kinds::throughput>().last()) {
      if (speed->step_seconds > 0) return speed->step_seconds;
    }
  }
  return {};
}

/// Time and cost, one line each.
void explain_cost(plan::RecipeRun const& run, PlanPrice const& price, std::ostream& out);

/// The run as plan/ sees it.
template <class Trainer, class B>
plan::RecipeRun recipe_run(Trainer& trainer, B const& batch, RecipeMemory const& memory,
                           PlanInputs const& given, PlanPrice const& price) {
  using Traits = RecipeTraits<typename Trainer::policies>;
  plan::RecipeRun run{
      .checkpoint_bytes = static_cast<double>(memory.checkpoint),
      .samples = static_cast<double>(batch_samples(batch)) * static_cast<double>(Traits::batches),
      .tokens_per_sample = given.tokens_per_sample,
      .devices = static_cast<double>(price.devices),
      .billed = price.billed,
      .link = given.link,
      .gradients = given.gradients,
      .overlap = given.overlap,
      .disk = given.disk,
      .restart = plan::Seconds(given.restart_seconds)};
  for (at::Tensor const& tensor : Parameters::of(base_module(trainer.module())).tensors) {
    run.parameters += static_cast<double>(tensor.numel());
    if (tensor.requires_grad()) run.trained += static_cast<double>(tensor.numel());
  }
  if (auto const step = step_seconds_of(trainer, given)) run.step = plan::Seconds(*step);
  if (given.save_seconds) run.save = plan::Seconds(*given.save_seconds);
  if (given.lifetime_seconds) run.lifetime = plan::Seconds(*given.lifetime_seconds);
  if (price.on_demand) run.on_demand = price.whole(*price.on_demand);
  if (price.spot) run.spot = price.whole(*price.spot);
  return run;
}

/// Everything that follows from a batch.
template <class Trainer, class B>
void explain_run(Trainer& trainer, B const& batch, std::optional<std::uint64_t> steps,
                 PlanInputs const& given, std::ostream& out) {
  RecipeMemory const memory = plan_memory(trainer, batch);
  explain_memory(memory, out);
  PlanPrice const price = price_of(trainer, given);
  plan::RecipeRun run = recipe_run(trainer, batch, memory, given, price);
  if (steps) run.steps = static_cast<double>(*steps);
  explain_cost(run, price, out);
  if (given.lifetime_seconds && !given.save_seconds && !memory.knows_optimizer) {
    print_paragraph(out,
                    "caution: the optimizer's state is not known, and a checkpoint takes "
                    "longer than without it; give save_seconds");
  }
  plan::Plan const plan = plan::plan_of(run);
  if (!plan.sections.empty()) out << '\n' << plan;
}

}  // namespace detail

/// As explain(trainer), and below it the memory of the recipe (plan_memory) and, as far as it is
/// known, the time and the cost of the run and the plan of report/plan/recipe_plan.hpp: the interval
/// between checkpoints and what preemptions cost, communication, the expected cost on spot against
/// on demand, and the compute-optimal model of the same compute.
///
/// data  a batch as the training source gives it; or the training source, of which one batch is
///       read and which must be able to seek back. A source that knows its size gives the number of
///       steps, and so time and cost.
/// Errors  SettingsError for a circumstance that is out of range; those of plan_memory and of
///         CostMeter's price; DataError for a source without a batch.
template <class Trainer, class Data>
  requires(!std::is_base_of_v<std::ostream, std::remove_cvref_t<Data>>)
void explain(Trainer& trainer, Data&& data, PlanInputs const& given = {},
             std::ostream& out = std::cout) {
  using Module = std::remove_reference_t<decltype(trainer.module())>;
  using Objective = std::remove_reference_t<decltype(trainer.objective())>;
  detail::require(given);
  if constexpr (ObjectiveFor<Objective, Module, std::remove_cvref_t<Data>>) {
    explain(trainer, out);
    detail::explain_run(trainer, data, trainer.settings().steps, given, out);
  } else {
    auto&& source = as_source(std::forward<Data>(data));
    using Source = std::remove_cvref_t<decltype(source)>;
    using Traits = detail::RecipeTraits<typename Trainer::policies>;
    RunLimits const horizon =
        detail::horizon_of(trainer.settings(), static_cast<Source const&>(source), Traits::batches);
    detail::explain_trainer(trainer, horizon, out);
    Cursor const start{trainer.settings().seed, 0, 0};
    detail::CallInProgress const call({.kind = detail::CallInProgress::Kind::reads,
                                       .name = "explain",
                                       .source = &source,
                                       .device = trainer.device()});
    source.seek(start);
    auto batch = source.next();
    source.seek(start);
    if (!batch) {
      throw DataError({.what = "the training source has no batch",
                       .where = "explain",
                       .why = "the memory of a recipe depends on the shapes of its batches",
                       .fix = "Give a source that is not empty, or a batch."});
    }
    detail::explain_run(trainer, *batch, horizon.total_steps, given, out);
  }
}

}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/report/explain_plan.ipp>
#endif
