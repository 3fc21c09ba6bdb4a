// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include <frugal/core/compose/policy.hpp>

/// The kinds that another policy or an accessor of trainers names: here, so that it need not include the
/// policy. All other kinds stand above their policies. A user-defined kind is one struct like these.
namespace frugal::kinds {

/// Of a kind whose policies come out the same however a run divides samples, layers and weights. Those that
/// listen to on::gradients or on::update must say property::works_on_parts themselves.
using right_in_parts = list<property::knows_ranks, property::knows_shards, property::knows_stages,
                            property::reads_no_weights>;

// Slots, in the order in which a step reaches them.
struct precision : slot_kind {
  static constexpr std::string_view name = "Precision";
  static constexpr std::string_view page = "policy/precision.md";
  using properties = right_in_parts;
};
struct accumulate : slot_kind {
  static constexpr std::string_view name = "Accumulate";
  static constexpr std::string_view page = "policy/accumulate.md";
  using properties = right_in_parts;
};
struct clip : slot_kind {
  static constexpr std::string_view name = "Clip";
  static constexpr std::string_view page = "policy/clip.md";
  static constexpr Stage stage = Stage::update;
  using properties = right_in_parts;
};
struct optimizer : slot_kind {
  static constexpr std::string_view name = "Optimize";
  static constexpr std::string_view page = "policy/optimize.md";
  static constexpr Stage stage = Stage::update;
  using properties = right_in_parts;
};
struct schedule : slot_kind {
  static constexpr std::string_view name = "Schedule";
  static constexpr std::string_view page = "policy/schedule.md";
  static constexpr Stage stage = Stage::decide;
  using properties = right_in_parts;
};
struct validate : slot_kind {
  static constexpr std::string_view name = "Validate";
  static constexpr std::string_view page = "policy/validate.md";
  static constexpr Stage stage = Stage::decide;
  static constexpr bool agreed_verdicts = true;  // validations have the same results in all
  using properties = right_in_parts;
};
/// How a step is executed: launch by launch, or as one recorded graph.
struct execution : slot_kind {
  static constexpr std::string_view name = "Execution";
  static constexpr std::string_view page = "policy/cuda_graph.md";
};
/// Which processes train together, and how their gradients are added up.
struct replicate : slot_kind {
  static constexpr std::string_view name = "Replicate";
  static constexpr std::string_view page = "cluster/replicate.md";
  using properties = right_in_parts;
};

// Observers. A save includes everything that the event did, by user-defined kinds as well, because
// its stage is the last but one.
struct activations : optional_kind {
  static constexpr std::string_view name = "Activations";
  static constexpr std::string_view page = "policy/activations.md";
  static constexpr Stage stage = Stage::transform;
  using properties =
      list<property::knows_ranks, property::knows_shards, property::reads_no_weights>;
};
struct alternate : optional_kind {
  static constexpr std::string_view name = "Alternate";
  static constexpr std::string_view page = "model/alternate.md";
  static constexpr Stage stage = Stage::prepare;
  using properties = list<property::knows_ranks>;
};
struct audit : optional_kind {
  static constexpr std::string_view name = "Audit";
  static constexpr std::string_view page = "report/audit.md";
  static constexpr Stage stage = Stage::prepare;
};
struct auto_batch : optional_kind {
  static constexpr std::string_view name = "AutoBatch";
  static constexpr std::string_view page = "policy/auto_batch.md";
};
struct average : optional_kind {
  static constexpr std::string_view name = "Average";
  static constexpr std::string_view page = "policy/average.md";
  static constexpr Stage stage = Stage::update;
  using properties = list<property::knows_ranks, property::knows_shards, property::knows_stages>;
};
struct budget : optional_kind {
  static constexpr std::string_view name = "Budget";
  static constexpr std::string_view page = "report/budget.md";
  static constexpr bool once_per_run = true;
};
struct burn_rate : optional_kind {
  static constexpr std::string_view name = "BurnRate";
  static constexpr std::string_view page = "report/burn_rate.md";
  static constexpr bool once_per_run = true;
};
struct checkpoint : optional_kind {
  static constexpr std::string_view name = "Checkpoint";
  static constexpr std::string_view page = "policy/checkpoint.md";
  static constexpr Stage stage = Stage::save;
  using properties = right_in_parts;
};
struct cost_meter : optional_kind {
  static constexpr std::string_view name = "CostMeter";
  static constexpr std::string_view page = "report/cost_meter.md";
  static constexpr bool once_per_run = true;
};
struct curriculum : optional_kind {
  static constexpr std::string_view name = "Curriculum";
  static constexpr std::string_view page = "policy/curriculum.md";
  static constexpr Stage stage = Stage::transform;
};
struct device : optional_kind {
  static constexpr std::string_view name = "DevicePrefetch";
  static constexpr std::string_view page = "policy/device_prefetch.md";
  static constexpr Stage stage = Stage::prepare;
};
struct distill : optional_kind {
  static constexpr std::string_view name = "Distill";
  static constexpr std::string_view page = "model/distill.md";
  static constexpr Stage stage = Stage::transform;
  using properties = list<property::knows_ranks>;
};
struct early_stop : optional_kind {
  static constexpr std::string_view name = "EarlyStop";
  static constexpr std::string_view page = "policy/early_stop.md";
  static constexpr Stage stage = Stage::decide;
  static constexpr bool agreed_verdicts = true;
  using properties = right_in_parts;
};
struct flush_denormals : optional_kind {
  static constexpr std::string_view name = "FlushDenormals";
  static constexpr std::string_view page = "policy/flush_denormals.md";
  static constexpr Stage stage = Stage::prepare;
  using properties = right_in_parts;
};
struct freeze : optional_kind {
  static constexpr std::string_view name = "Freeze";
  static constexpr std::string_view page = "model/freeze.md";
  static constexpr Stage stage = Stage::prepare;
  using properties = list<property::knows_ranks>;
};
struct html_report : optional_kind {
  static constexpr std::string_view name = "HtmlReport";
  static constexpr std::string_view page = "report/html_report.md";
  static constexpr bool once_per_run = true;
  static constexpr Stage stage = Stage::leave;
};
struct importance : optional_kind {
  static constexpr std::string_view name = "Importance";
  static constexpr std::string_view page = "policy/importance.md";
  static constexpr Stage stage = Stage::transform;
};
struct keep_host_memory : optional_kind {
  static constexpr std::string_view name = "KeepHostMemory";
  static constexpr std::string_view page = "policy/keep_host_memory.md";
  static constexpr Stage stage = Stage::prepare;
  using properties = right_in_parts;
};
struct log : repeatable_kind {
  static constexpr std::string_view name = "Log";
  static constexpr std::string_view page = "report/log.md";
  static constexpr bool once_per_run = true;
  static constexpr Stage stage = Stage::publish;
};
struct lora : repeatable_kind {
  static constexpr std::string_view name = "Lora";
  static constexpr std::string_view page = "model/lora.md";
  static constexpr Stage stage = Stage::prepare;
  using properties = list<property::knows_ranks>;
};
struct profile : optional_kind {
  static constexpr std::string_view name = "Profile";
  static constexpr std::string_view page = "report/profile.md";
  static constexpr bool once_per_run = true;
  static constexpr Stage stage = Stage::enclose;
};
struct progress : optional_kind {
  static constexpr std::string_view name = "Progress";
  static constexpr std::string_view page = "report/progress.md";
  static constexpr bool once_per_run = true;
  static constexpr Stage stage = Stage::publish;
};
struct prune : optional_kind {
  static constexpr std::string_view name = "Prune";
  static constexpr std::string_view page = "model/prune.md";
  static constexpr Stage stage = Stage::update;
};
struct recompute : optional_kind {
  static constexpr std::string_view name = "Recompute";
  static constexpr std::string_view page = "policy/recompute.md";
  static constexpr Stage stage = Stage::transform;
  using properties = list<property::knows_ranks, property::knows_shards, property::reads_no_weights,
                          property::works_in_layers>;
};
struct rollback : optional_kind {
  static constexpr std::string_view name = "Rollback";
  static constexpr std::string_view page = "policy/rollback.md";
  static constexpr Stage stage = Stage::keep;
  using properties = list<property::knows_ranks>;
};
struct skip_non_finite : optional_kind {
  static constexpr std::string_view name = "SkipNonFinite";
  static constexpr std::string_view page = "policy/skip_non_finite.md";
  static constexpr Stage stage = Stage::transform;
  using properties = right_in_parts;
};
struct dry_run : optional_kind {
  static constexpr std::string_view name = "DryRun";
  static constexpr std::string_view page = "policy/dry_run.md";
};
struct spot : optional_kind {
  static constexpr std::string_view name = "Spot";
  static constexpr std::string_view page = "policy/spot.md";
  static constexpr Stage stage = Stage::leave;
  using properties = right_in_parts;
};
/// Of search(), which adds its policy to each recipe.
struct search_watch : optional_kind {
  static constexpr std::string_view name = "SearchWatch";
  static constexpr Stage stage = Stage::leave;
};
struct start_on : optional_kind {
  static constexpr std::string_view name = "StartOn";
  static constexpr std::string_view page = "policy/start_on.md";
  static constexpr Stage stage = Stage::prepare;
};
struct stop_after : optional_kind {
  static constexpr std::string_view name = "StopAfter";
  static constexpr std::string_view page = "policy/stop_after.md";
  static constexpr Stage stage = Stage::decide;
  using properties = right_in_parts;
};
struct throughput : optional_kind {
  static constexpr std::string_view name = "Throughput";
  static constexpr std::string_view page = "report/throughput.md";
  static constexpr bool once_per_run = true;
};

struct train_metrics : optional_kind {
  static constexpr std::string_view name = "TrainMetrics";
  static constexpr std::string_view page = "policy/train_metrics.md";
  using properties = list<property::knows_ranks, property::reads_no_weights>;
};
struct unfreeze : optional_kind {
  static constexpr std::string_view name = "Unfreeze";
  static constexpr std::string_view page = "model/freeze.md";
  static constexpr Stage stage = Stage::prepare;
  using properties = list<property::knows_ranks>;
};

}  // namespace frugal::kinds
