// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/inline.hpp>
#include <frugal/report/plan/all_reduce.hpp>
#include <frugal/report/plan/checkpoint_cost.hpp>
#include <frugal/report/plan/compute_optimal.hpp>
#include <frugal/report/plan/money.hpp>
#include <frugal/report/plan/plan.hpp>
#include <frugal/report/plan/spot_cost.hpp>
#include <frugal/report/plan/tables.hpp>

#include <optional>
#include <string>

namespace frugal::plan {

/// A run whose recipe is at hand: sizes are counted, and the time of a step is measured. What is
/// not known is left out of its plan.
struct RecipeRun {
  double parameters = 0;           ///< of the model
  double trained = 0;              ///< of these, with gradients
  double checkpoint_bytes = 0;     ///< on disk
  std::optional<double> steps{};   ///< of the run
  std::optional<Seconds> step{};   ///< of one device alone, without communication
  double samples = 1;              ///< of one device in a step
  double tokens_per_sample = 0;    ///< 0: not a language model, and no compute-optimal one
  double devices = 1;              ///< that train together, each with its own samples
  std::optional<double> billed{};  ///< devices that are paid for; else `devices`
  GigabytesPerSecond link{};       ///< between devices; 0: communication is left out
  GradientFormat gradients = GradientFormat::FP32;
  double overlap = 0;                 ///< share of a step in which gradients travel
  GigabytesPerSecond disk{1};         ///< at which a checkpoint is written
  std::optional<Seconds> save{};      ///< that a checkpoint stops the steps; else by bytes and disk
  std::optional<Seconds> lifetime{};  ///< of the job: mean time between two interruptions
  Seconds restart{300};               ///< from an interruption to the next step
  std::optional<PricePerDevice> on_demand{};
  std::optional<PricePerDevice> spot{};

  bool communicates() const { return devices > 1 && link.value() > 0; }
  FRUGAL_INLINE DataParallel data_parallel() const {
    return {.devices = devices,
            .parameters = trained,
            .gradients = gradients,
            .bandwidth = link,
            .samples_per_second = samples / step->value(),
            .samples = samples,
            .overlap = overlap};
  }
  /// That a step waits for other devices.
  Seconds exposed() const {
    return communicates() && step ? estimate(data_parallel()).exposed : Seconds(0);
  }
  FRUGAL_INLINE std::optional<double> hours() const {
    if (!steps || !step) return {};
    return *steps * (*step + exposed()).value() / 3600;
  }
  Seconds save_time() const { return save ? *save : gigabytes(checkpoint_bytes) / disk; }
};

/// What a model and its tokens are against the compute-optimal ones of the same compute.
FRUGAL_INLINE Plan plan_of(Allocation const& run) {
  detail::require_positive("parameters", run.parameters);
  detail::require_positive("tokens", run.tokens);
  OptimalPlan const best = optimal_plan(run.flops());
  Plan plan;
  PlanSection& section = plan.add("Model and tokens");
  section.rows = {{"parameters", run.parameters},
                  {"tokens", run.tokens},
                  {"tokens_per_parameter", run.tokens_per_parameter(), Unit::ratio},
                  {"parameters_over_rule", run.parameters / best.rule.parameters, Unit::ratio}};
  double const ratio = run.parameters / best.rule.parameters;
  section.notes = {
      ratio > 1.25  ? "A smaller model on more tokens is the better use of this compute."
      : ratio < 0.8 ? "A larger model on fewer tokens is the better use of this compute."
                    : "Close to the rule of 20 tokens per parameter."};
  plan += plan_of(best);
  return plan;
}

/// Checkpoints, communication, model size and spot, with the numbers that `frugal_plan` gives for
/// the same inputs.
FRUGAL_INLINE Plan plan_of(RecipeRun const& in) {
  detail::require_not_negative("tokens per sample", in.tokens_per_sample);
  Plan plan;
  std::optional<double> const hours = in.hours();
  if (in.lifetime && in.save_time() > Seconds(0)) {
    plan += plan_of(CheckpointInputs{.save = in.save_time(),
                                     .lifetime = *in.lifetime,
                                     .restart = in.restart,
                                     .hours = hours.value_or(0)});
    plan.sections.back().rows.front().note =
        in.save ? "as given" : detail::text_of(in.checkpoint_bytes, Unit::bytes) + " to the disk";
  }
  if (in.communicates() && in.step) plan += plan_of(in.data_parallel());
  bool const has_time = hours && *hours > 0 && in.on_demand && *in.on_demand > PricePerDevice(0);
  if (in.spot && in.lifetime && has_time) {
    plan += plan_of(SpotInputs{.hours = *hours,
                               .devices = in.devices,
                               .on_demand = *in.on_demand,
                               .spot = *in.spot,
                               .preemptions_per_hour = 3600 / in.lifetime->value(),
                               .save = in.save_time(),
                               .restart = in.restart,
                               .billed = in.billed,
                               .spot_billed = in.billed});
  }
  if (in.tokens_per_sample > 0 && in.steps && *in.steps > 0) {
    double const readers = in.communicates() ? in.devices : 1;
    plan += plan_of(Allocation{.parameters = in.parameters,
                               .tokens = *in.steps * in.samples * in.tokens_per_sample * readers});
  }
  return plan;
}

}  // namespace frugal::plan
