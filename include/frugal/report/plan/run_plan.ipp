// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/report/plan/run_plan.hpp>

#include <frugal/inline.hpp>

#include <string>

namespace frugal::plan {

FRUGAL_INLINE DataParallel RecipeRun::data_parallel() const {
  return {.devices = devices,
          .parameters = trained,
          .gradients = gradients,
          .bandwidth = link,
          .samples_per_second = samples / step->value(),
          .samples = samples,
          .overlap = overlap};
}

FRUGAL_INLINE std::optional<double> RecipeRun::hours() const {
  if (!steps || !step) return {};
  return *steps * (*step + exposed()).value() / 3600;
}

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
