// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include <frugal/compose/kind.hpp>

/// The kinds of frugal's own policies, in one header so that a policy can name another's kind
/// without including it. A user-defined kind is one struct like these.
namespace frugal::kinds {

// Slots, in the order in which a step reaches them.
struct precision : slot_kind {
  static constexpr std::string_view name = "Precision";
};
struct accumulate : slot_kind {
  static constexpr std::string_view name = "Accumulate";
};
struct clip : slot_kind {
  static constexpr std::string_view name = "Clip";
};
struct optimizer : slot_kind {
  static constexpr std::string_view name = "Optimize";
};
struct schedule : slot_kind {
  static constexpr std::string_view name = "Schedule";
};
struct validate : slot_kind {
  static constexpr std::string_view name = "Validate";
};
/// How a step is executed: launch by launch, or as one recorded graph.
struct execution : slot_kind {
  static constexpr std::string_view name = "Execution";
};

// Observers. Ranked kinds run after unranked ones, including user-defined kinds: a save must
// include everything that the event did.
struct activations : observer_kind {
  static constexpr std::string_view name = "Activations";
};
struct audit : observer_kind {
  static constexpr std::string_view name = "Audit";
};
struct auto_batch : observer_kind {
  static constexpr std::string_view name = "AutoBatch";
};
struct average : observer_kind {
  static constexpr std::string_view name = "Average";
};
struct checkpoint : observer_kind {
  static constexpr std::string_view name = "Checkpoint";
  static constexpr int rank = 2;
};
/// A time by which a step must be complete.
struct deadline : observer_kind {
  static constexpr std::string_view name = "Deadline";
};
struct device : observer_kind {
  static constexpr std::string_view name = "Device";
};
struct early_stop : observer_kind {
  static constexpr std::string_view name = "EarlyStop";
};
struct flush_denormals : observer_kind {
  static constexpr std::string_view name = "FlushDenormals";
};
struct keep_memory : observer_kind {
  static constexpr std::string_view name = "KeepMemory";
};
struct log : repeatable_kind {
  static constexpr std::string_view name = "Log";
};
struct progress : observer_kind {
  static constexpr std::string_view name = "Progress";
};
struct recompute : observer_kind {
  static constexpr std::string_view name = "Recompute";
};
struct rollback : observer_kind {
  static constexpr std::string_view name = "Rollback";
  static constexpr int rank = 1;
};
struct smoke : observer_kind {
  static constexpr std::string_view name = "Smoke";
};
struct spot : observer_kind {
  static constexpr std::string_view name = "Spot";
  static constexpr int rank = 3;
};
struct start_on : observer_kind {
  static constexpr std::string_view name = "StartOn";
};
struct throughput : observer_kind {
  static constexpr std::string_view name = "Throughput";
};

struct train_metrics : observer_kind {
  static constexpr std::string_view name = "TrainMetrics";
};

}  // namespace frugal::kinds
