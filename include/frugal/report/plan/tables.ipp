// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/report/plan/tables.hpp>

#include <frugal/base/json_writer.hpp>
#include <frugal/error.hpp>
#include <frugal/inline.hpp>
#include <frugal/report/plan/money.hpp>

#include <cmath>

namespace frugal::plan {

FRUGAL_INLINE Breakdown& Breakdown::add(Lever const& lever) {
  detail::require_not_negative("factor of " + lever.name, lever.factor);
  RunCost cost = steps_.back().cost;
  switch (lever.term) {
    case Term::price:
      cost.price = cost.price * lever.factor;
      break;
    case Term::hours:
      cost.hours *= lever.factor;
      break;
    case Term::runs:
      cost.runs *= lever.factor;
      break;
  }
  std::string note(name_of(lever.term));
  note += ", " + std::string(name_of(lever.evidence));
  if (!lever.note.empty()) note += ": " + lever.note;
  Usd const saved = steps_.back().cost.total() - cost.total();
  steps_.push_back({.name = "+ " + lever.name, .cost = cost, .saved = saved, .note = note});
  return *this;
}

FRUGAL_INLINE std::string Breakdown::json() const {
  frugal::detail::JsonWriter out;
  out.object().add("version", 1).add("currency", "USD").add("title", title_);
  out.add("unit", "USD").key("steps").array();
  for (BreakdownStep const& step : steps_) {
    out.on_line(0).object().add("name", step.name).add("value", step.cost.total().value());
    out.add("hours", step.cost.hours * step.cost.runs).add("note", step.note).end();
  }
  return out.on_line(0).str("\n");
}

FRUGAL_INLINE Plan plan_of(OptimalPlan const& got, std::optional<Spending> const& on) {
  Plan plan;
  auto const spend = [&on](PlanSection& section, std::string const& name, double flops) {
    if (!on) return;
    DeviceHours const hours = time_for(flops, on->speed);
    section.rows.push_back({name + "_device_hours", hours.value(), Unit::hours});
    if (!on->price) return;
    detail::require_not_negative("price", on->price->value());
    section.rows.push_back({name + "_cost", (*on->price * hours).value(), Unit::usd});
  };
  plan.add("Compute budget").rows = {{"compute", got.flops, Unit::flop}};
  PlanSection& rule = plan.add("By tokens per parameter, C = 6ND");
  rule.rows = {{"rule_parameters", got.rule.parameters},
               {"rule_tokens", got.rule.tokens},
               {"rule_tokens_per_parameter", got.rule.tokens_per_parameter(), Unit::ratio}};
  spend(rule, "rule", got.rule.flops());
  PlanSection& fit = plan.add("By the coefficients of N = a C^alpha and D = b C^beta");
  fit.rows = {{"fit_parameters", got.fit.parameters},
              {"fit_tokens", got.fit.tokens},
              {"fit_tokens_per_parameter", got.fit.tokens_per_parameter(), Unit::ratio},
              {"fit_compute", got.fit.flops(), Unit::flop,
               "6ND: " + detail::text_of(got.fit_over_budget(), Unit::ratio) + " of the budget"}};
  if (got.fit_over_budget() > 1.01) {
    fit.notes = {"These coefficients ask for " +
                 detail::text_of(got.fit_over_budget(), Unit::ratio) +
                 " times the compute that there is. Plan with the rule."};
  }
  spend(fit, "fit", got.fit.flops());
  PlanSection& both = plan.add("Where they disagree: the coefficients over the rule");
  both.rows = {{"parameters_ratio", got.parameters_ratio(), Unit::ratio},
               {"tokens_ratio", got.tokens_ratio(), Unit::ratio},
               {"fit_over_budget", got.fit_over_budget(), Unit::ratio, "6ND over the budget"}};
  return plan;
}

FRUGAL_INLINE Plan plan_of(RunCost const& cost) {
  Plan plan;
  plan.add("Cost").rows = {{"price_per_device", cost.price.value(), Unit::usd_per_hour},
                           {"price_of_all_devices", cost.per_hour().value(), Unit::usd_per_hour},
                           {"hours_per_run", cost.hours, Unit::hours},
                           {"device_hours_per_run", cost.per_run_hours().value(), Unit::hours},
                           {"cost_per_run", cost.per_run().value(), Unit::usd},
                           {"runs", cost.runs},
                           {"cost", cost.total().value(), Unit::usd}};
  return plan;
}

FRUGAL_INLINE Plan plan_of(Breakdown const& breakdown) {
  Plan plan;
  PlanSection& steps = plan.add(breakdown.title());
  for (BreakdownStep const& step : breakdown.steps()) {
    std::string note = step.note;
    if (step.saved != Usd(0)) {
      note = "saves " + dollars_text(step.saved.value()) + "; " + note;
    }
    steps.rows.push_back({step.name, step.cost.total().value(), Unit::usd, note});
  }
  plan.add("Together").rows = {{"saved", breakdown.saved().value(), Unit::usd},
                               {"saved_share", breakdown.saved_share(), Unit::share}};
  return plan;
}

FRUGAL_INLINE Plan plan_of(DataParallel const& job, std::string const& sample) {
  ScalingEstimate const got = estimate(job);
  auto const efficiency_at = [&](double overlap) {
    DataParallel other = job;
    other.overlap = overlap;
    return estimate(other).efficiency;
  };
  double const overlap = job.overlap > 0 ? job.overlap : backward_share;
  Plan plan;
  PlanSection& section = plan.add("Ring all-reduce");
  section.rows = {
      {"gradient_bytes", job.parameters * bytes_of(job.gradients), Unit::bytes},
      {"compute_time", got.compute.value(), Unit::seconds, "of one step"},
      {"communication_time", got.communication.value(), Unit::seconds},
      {"exposed_time", got.exposed.value(), Unit::seconds, "not hidden by overlap"},
      {"efficiency", got.efficiency, Unit::share, "80 % is good, 60 % fair"},
      {"efficiency_without_overlap", efficiency_at(0), Unit::share},
      {"efficiency_with_overlap", efficiency_at(overlap), Unit::share,
       "with " + detail::text_of(overlap, Unit::share) + " of a step"},
      {"speedup", got.speedup, Unit::ratio, "over one device"},
      {sample + "_for_80_percent", got.samples_for_good, Unit::count, "of a device in a step"}};
  section.notes = {std::string(advice(job, got))};
  return plan;
}

FRUGAL_INLINE Plan plan_of(MemoryEstimate const& got) {
  Plan plan;
  plan.add("Memory of a device").rows = {{"weights", got.weights, Unit::bytes},
                                         {"gradients", got.gradients, Unit::bytes},
                                         {"optimizer_state", got.optimizer, Unit::bytes},
                                         {"averages", got.averages, Unit::bytes},
                                         {"buffers", got.buffers, Unit::bytes},
                                         {"activations", got.activations, Unit::bytes},
                                         {"memory", got.all(), Unit::bytes},
                                         {"checkpoint_size", got.checkpoint(), Unit::bytes}};
  return plan;
}

FRUGAL_INLINE Plan plan_of(CheckpointInputs const& in) {
  CheckpointEstimate const got = estimate(in);
  Plan plan;
  PlanSection& section = plan.add("Checkpoint interval");
  section.rows = {{"save_time", in.save.value(), Unit::seconds, "of a checkpoint"},
                  {"young_interval", got.young.value(), Unit::seconds},
                  {"daly_interval", got.daly.value(), Unit::seconds},
                  {"overhead", got.overhead, Unit::share, "checkpoints, interruptions"}};
  if (in.hours > 0) {
    section.rows.push_back({"hours", got.hours, Unit::hours, "expected, at Daly's interval"});
    section.rows.push_back({"save_hours", got.save_hours, Unit::hours, "in checkpoints"});
    section.rows.push_back({"lost_hours", got.lost_hours, Unit::hours, "to interruptions"});
  }
  return plan;
}

FRUGAL_INLINE Plan plan_of(SpotInputs const& in) {
  SpotEstimate const got = estimate(in);
  Plan plan;
  PlanSection& section = plan.add("Spot against on demand");
  section.rows = {{"checkpoint_interval", got.interval.value(), Unit::seconds,
                   in.interval ? "as given" : "Daly's"},
                  {"spot_hours", got.hours, Unit::hours, "expected"},
                  {"preemptions", got.preemptions, Unit::ratio, "expected"},
                  {"save_hours", got.save_hours, Unit::hours, "in checkpoints"},
                  {"lost_hours", got.lost_hours, Unit::hours, "to preemptions"},
                  {"spot_cost", got.cost.value(), Unit::usd},
                  {"on_demand_cost", got.on_demand.value(), Unit::usd,
                   in.interval ? "with the same checkpoints" : "with one checkpoint"},
                  {"spot_saving", got.saved_share(), Unit::share},
                  {"break_even_rate", break_even_rate(in), Unit::per_hour, "preemptions"}};
  if (std::isinf(got.hours)) {
    section.notes = {"Restarts take longer than the machines live: the run never ends."};
  } else if (got.cost > got.on_demand) {
    section.notes = {"On demand is cheaper at this rate."};
  } else if (in.preemptions_per_hour == 0) {
    section.notes = {"No preemptions are assumed: the saving is the difference of the prices."};
  }
  return plan;
}

}  // namespace frugal::plan
