// SPDX-License-Identifier: Apache-2.0
#pragma once

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
#include <frugal/report/plan/all_reduce.hpp>
#include <frugal/report/plan/money.hpp>
#include <frugal/report/plan/plan.hpp>
#include <frugal/report/plan/run_plan.hpp>
#include <frugal/report/plan_memory.hpp>

#include <ATen/ATen.h>

#include <cstdint>
#include <iostream>
#include <optional>
#include <ostream>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace frugal {

/// What explain cannot find out by itself. What is left out is not printed.
struct PlanInputs {
  std::optional<plan::PricePerDevice> price{};  ///< USD per hour of a device, on demand; else
                                                ///< CostMeter's
  std::optional<int> devices{};                 ///< that train; else CostMeter's, else 1
  std::optional<double> step_seconds{};  ///< of a step of one device; else by Throughput's last fit
  std::optional<double> save_seconds{};  ///< for which a checkpoint stops the training; else its
                                         ///< bytes by `disk`
  std::optional<double> lifetime_seconds{};    ///< of the job: mean time between two preemptions,
                                               ///< whichever of its machines they take
  std::optional<plan::PricePerDevice> spot{};  ///< the price where the job lives so long
  double restart_seconds = 300;                ///< from a preemption to the next step
  plan::GigabytesPerSecond disk{1};            ///< at which a checkpoint is written
  plan::GigabytesPerSecond link{};  ///< between devices, which then average gradients; 0:
                                    ///< no communication
  plan::GradientFormat gradients = plan::GradientFormat::FP32;  ///< as they travel
  double overlap = 0;            ///< share of a step during which gradients travel
  double tokens_per_sample = 0;  ///< of a language model, for the compute-optimal comparison
  std::optional<double> other_per_hour{};  ///< USD: storage, network; else CostMeter's
};

namespace detail {

void require(PlanInputs const& given);

/// What an hour costs, by PlanInputs and CostMeter together.
struct PlanPrice {
  std::optional<plan::PricePerDevice> on_demand{};
  std::optional<plan::PricePerDevice> spot{};
  int devices = 1;            ///< that train
  double billed = 1;          ///< devices that are paid for: an offer per node bills whole nodes
  double other_per_hour = 0;  ///< on demand and on spot alike
  double idle_seconds = 0;    ///< billed before the start
  bool pays_spot = false;     ///< CostMeter bills the spot price
  std::vector<std::string> notes{};

  /// Adds the other costs, divided among the devices that are paid for.
  plan::PricePerDevice whole(plan::PricePerDevice price) const {
    return price + plan::PricePerDevice(other_per_hour / billed);
  }
};

/// What PlanInputs leaves out is CostMeter's, if the recipe has one and it counts in dollars.
template <class Trainer>
PlanPrice price_of(Trainer& trainer, PlanInputs const& given) {
  PlanPrice out{.on_demand = given.price,
                .spot = given.spot,
                .devices = given.devices.value_or(1),
                .billed = static_cast<double>(given.devices.value_or(1)),
                .other_per_hour = given.other_per_hour.value_or(0)};
  if constexpr (has<kinds::cost_meter, typename Trainer::policies>) {
    auto meter = trainer.template policy<kinds::cost_meter>();
    if (meter.currency != "USD") return out;
    if (given.devices) meter.devices = static_cast<unsigned>(*given.devices);
    bool const on_gpu = trainer.device().is_cuda();
    auto const rate = meter.rate(on_gpu);
    out.devices = static_cast<int>(meter.devices.value_or(1));
    out.billed = given.price ? out.devices : rate.devices;
    out.other_per_hour = given.other_per_hour.value_or(meter.other_per_hour);
    out.idle_seconds = meter.idle;
    if (meter.price_per_kilowatt_hour > 0) {
      out.notes.push_back("not in the cost: electricity at " +
                          plan::dollars_text(meter.price_per_kilowatt_hour) +
                          " a kilowatt-hour, which CostMeter measures during the run");
    }
    if (given.price) return out;
    if (!rate.warning.empty()) out.notes.push_back("caution: " + rate.warning);
    auto const per_device = [&](auto const& of) {
      return plan::PricePerDevice((*of.per_hour - meter.other_per_hour) / of.devices);
    };
    if (!rate.per_hour) return out;
    out.on_demand = per_device(rate);
    if (!meter.spot) return out;
    meter.spot = false;  // the same offer on demand; a price that was set has no spot price
    auto const on_demand = meter.rate(on_gpu);
    if (on_demand.source == rate.source) return out;
    out.pays_spot = true;
    if (!given.spot) out.spot = out.on_demand;
    out.on_demand = per_device(on_demand);
  }
  return out;
}

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
  plan::RecipeRun run{.checkpoint_bytes = static_cast<double>(memory.checkpoint),
                      .samples = static_cast<double>(batch_samples(batch)) *
                                 static_cast<double>(TrainerAccess::facts_of(trainer).batches),
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
/// known, the time and the cost of the run and the plan of report/plan/run_plan.hpp: the interval
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
    RunLimits const horizon = detail::horizon_of(
        trainer.settings(), static_cast<Source const&>(source),
        static_cast<std::uint64_t>(detail::TrainerAccess::facts_of(trainer).batches));
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
