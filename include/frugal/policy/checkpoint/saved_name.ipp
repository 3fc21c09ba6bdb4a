// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/policy/checkpoint/saved_name.hpp>

#include <frugal/inline.hpp>

namespace frugal::detail {

FRUGAL_INLINE Slots slots_from(std::span<SlotName const> policies) {
  Slots slots;
  for (SlotName const& each : policies) {
    if (each.name != nullptr) slots.emplace(each.kind, each.name());
  }
  return slots;
}

}  // namespace frugal::detail
