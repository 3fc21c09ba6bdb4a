// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include <frugal/compose/kind.hpp>

/// The kinds of frugal's own policies, in one place so that a policy can name another's kind
/// without including it. A kind of your own is one struct like these.
namespace frugal::kinds {

// Slots, in the order in which a step meets them.
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

// Observers.
struct checkpoint : observer_kind {
  static constexpr std::string_view name = "Checkpoint";
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
struct smoke : observer_kind {
  static constexpr std::string_view name = "Smoke";
};
struct spot : observer_kind {
  static constexpr std::string_view name = "Spot";
};

}  // namespace frugal::kinds
