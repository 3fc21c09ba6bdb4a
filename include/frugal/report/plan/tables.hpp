// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/report/plan/all_reduce.hpp>
#include <frugal/report/plan/breakdown.hpp>
#include <frugal/report/plan/compute_optimal.hpp>
#include <frugal/report/plan/memory.hpp>
#include <frugal/report/plan/plan.hpp>
#include <frugal/report/plan/spot_cost.hpp>

#include <optional>
#include <string>

/// The results of the formulas as plans.
namespace frugal::plan {

/// The devices on which a budget is spent; hours need their speed, and dollars a price.
struct Spending {
  Speed speed{};
  std::optional<PricePerDevice> price{};
};

/// Adds, if `on` is given, the device hours and the cost of each allocation.
Plan plan_of(OptimalPlan const& got, std::optional<Spending> const& on = {});

Plan plan_of(RunCost const& cost);

/// The rows are keyed by the names of the levers, which are the user's.
Plan plan_of(Breakdown const& breakdown);

/// `sample`: what `job` counts as samples, such as "tokens".
Plan plan_of(DataParallel const& job, std::string const& sample = "samples");

Plan plan_of(MemoryEstimate const& got);

Plan plan_of(CheckpointInputs const& in);

Plan plan_of(SpotInputs const& in);

}  // namespace frugal::plan

#ifndef FRUGAL_COMPILED
#include <frugal/report/plan/tables.ipp>
#endif
