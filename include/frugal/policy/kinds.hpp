// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include <frugal/core/compose/kind.hpp>

/// The kinds of frugal's own policies, in one header so that a policy can name another's kind
/// without including it. A user-defined kind is one struct like these.
namespace frugal::kinds {

// Slots, in the order in which a step reaches them.
struct precision : slot_kind {
  static constexpr std::string_view name = "Precision";
  static constexpr std::string_view page = "policy/precision.md";
};
struct accumulate : slot_kind {
  static constexpr std::string_view name = "Accumulate";
  static constexpr std::string_view page = "policy/accumulate.md";
};
struct clip : slot_kind {
  static constexpr std::string_view name = "Clip";
  static constexpr std::string_view page = "policy/clip.md";
};
struct optimizer : slot_kind {
  static constexpr std::string_view name = "Optimize";
  static constexpr std::string_view page = "policy/optimize.md";
};
struct schedule : slot_kind {
  static constexpr std::string_view name = "Schedule";
  static constexpr std::string_view page = "policy/schedule.md";
};
struct validate : slot_kind {
  static constexpr std::string_view name = "Validate";
  static constexpr std::string_view page = "policy/validate.md";
};
/// How a step is executed: launch by launch, or as one recorded graph.
struct execution : slot_kind {
  static constexpr std::string_view name = "Execution";
  static constexpr std::string_view page = "policy/cuda_graph.md";
};

// Observers. Ranked kinds run after unranked ones, including user-defined kinds: a save must
// include everything that the event did.
struct activations : optional_kind {
  static constexpr std::string_view name = "Activations";
  static constexpr std::string_view page = "policy/activations.md";
};
struct audit : optional_kind {
  static constexpr std::string_view name = "Audit";
  static constexpr std::string_view page = "report/audit.md";
};
struct auto_batch : optional_kind {
  static constexpr std::string_view name = "AutoBatch";
  static constexpr std::string_view page = "policy/auto_batch.md";
};
struct average : optional_kind {
  static constexpr std::string_view name = "Average";
  static constexpr std::string_view page = "policy/average.md";
};
struct budget : optional_kind {
  static constexpr std::string_view name = "Budget";
  static constexpr std::string_view page = "report/budget.md";
};
struct burn_rate : optional_kind {
  static constexpr std::string_view name = "BurnRate";
  static constexpr std::string_view page = "report/burn_rate.md";
};
struct checkpoint : optional_kind {
  static constexpr std::string_view name = "Checkpoint";
  static constexpr std::string_view page = "policy/checkpoint.md";
  static constexpr int rank = 2;
};
struct cost_meter : optional_kind {
  static constexpr std::string_view name = "CostMeter";
  static constexpr std::string_view page = "report/cost_meter.md";
};
struct csv : repeatable_kind {
  static constexpr std::string_view name = "Csv";
  static constexpr std::string_view page = "report/csv.md";
};
struct curriculum : optional_kind {
  static constexpr std::string_view name = "Curriculum";
  static constexpr std::string_view page = "policy/curriculum.md";
};
struct device : optional_kind {
  static constexpr std::string_view name = "DevicePrefetch";
  static constexpr std::string_view page = "policy/device_prefetch.md";
};
struct early_stop : optional_kind {
  static constexpr std::string_view name = "EarlyStop";
  static constexpr std::string_view page = "policy/early_stop.md";
};
struct flush_denormals : optional_kind {
  static constexpr std::string_view name = "FlushDenormals";
  static constexpr std::string_view page = "policy/flush_denormals.md";
};
struct html_report : optional_kind {
  static constexpr std::string_view name = "HtmlReport";
  static constexpr std::string_view page = "report/html_report.md";
};
struct importance : optional_kind {
  static constexpr std::string_view name = "Importance";
  static constexpr std::string_view page = "policy/importance.md";
};
struct keep_host_memory : optional_kind {
  static constexpr std::string_view name = "KeepHostMemory";
  static constexpr std::string_view page = "policy/keep_host_memory.md";
};
struct log : repeatable_kind {
  static constexpr std::string_view name = "Log";
  static constexpr std::string_view page = "report/log.md";
};
struct mlperf_log : optional_kind {
  static constexpr std::string_view name = "MlperfLog";
  static constexpr std::string_view page = "report/mlperf_log.md";
};
struct on_metrics : repeatable_kind {
  static constexpr std::string_view name = "OnMetrics";
  static constexpr std::string_view page = "report/on_metrics.md";
};
struct profile : optional_kind {
  static constexpr std::string_view name = "Profile";
  static constexpr std::string_view page = "report/profile.md";
};
struct progress : optional_kind {
  static constexpr std::string_view name = "Progress";
  static constexpr std::string_view page = "report/progress.md";
};
struct prometheus : optional_kind {
  static constexpr std::string_view name = "Prometheus";
  static constexpr std::string_view page = "report/prometheus.md";
};
struct prometheus_endpoint : optional_kind {
  static constexpr std::string_view name = "PrometheusEndpoint";
  static constexpr std::string_view page = "report/prometheus_endpoint.md";
};
struct recompute : optional_kind {
  static constexpr std::string_view name = "Recompute";
  static constexpr std::string_view page = "policy/recompute.md";
};
struct rollback : optional_kind {
  static constexpr std::string_view name = "Rollback";
  static constexpr std::string_view page = "policy/rollback.md";
  static constexpr int rank = 1;
};
struct skip_non_finite : optional_kind {
  static constexpr std::string_view name = "SkipNonFinite";
  static constexpr std::string_view page = "policy/skip_non_finite.md";
};
struct dry_run : optional_kind {
  static constexpr std::string_view name = "DryRun";
  static constexpr std::string_view page = "policy/dry_run.md";
};
struct spot : optional_kind {
  static constexpr std::string_view name = "Spot";
  static constexpr std::string_view page = "policy/spot.md";
  static constexpr int rank = 3;
};
struct start_on : optional_kind {
  static constexpr std::string_view name = "StartOn";
  static constexpr std::string_view page = "policy/start_on.md";
};
struct stop_after : optional_kind {
  static constexpr std::string_view name = "StopAfter";
  static constexpr std::string_view page = "policy/stop_after.md";
};
struct tensorboard : optional_kind {
  static constexpr std::string_view name = "TensorBoard";
  static constexpr std::string_view page = "report/tensorboard.md";
};
struct throughput : optional_kind {
  static constexpr std::string_view name = "Throughput";
  static constexpr std::string_view page = "report/throughput.md";
};

struct train_metrics : optional_kind {
  static constexpr std::string_view name = "TrainMetrics";
  static constexpr std::string_view page = "policy/train_metrics.md";
};

}  // namespace frugal::kinds
