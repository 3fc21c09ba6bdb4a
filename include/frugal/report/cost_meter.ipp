// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/report/cost_meter.hpp>

#include <frugal/inline.hpp>
#include <frugal/report/plan/peak.hpp>

#include <algorithm>

namespace frugal {

FRUGAL_INLINE detail::Rate CostMeter::rate(bool on_gpu, Processes const& all) const {
  char const* const environment = std::getenv(detail::price_variable);
  bool const per_node =
      std::holds_alternative<plan::PricePerNode>(price) ||
      (std::holds_alternative<std::monostate>(price) && offer.empty() && environment != nullptr);
  return detail::rate_of({.price = price,
                          .devices = devices.value_or(all.count),
                          .nodes = nodes.value_or(per_node ? all.machines : 1),
                          .machines = nodes ? 1 : all.machines,
                          .prices = prices,
                          .offer = offer,
                          .spot = spot,
                          .currency = currency,
                          .other_per_hour = other_per_hour,
                          .model = on_gpu ? watch::gpu_model() : std::string(),
                          .environment = environment});
}

}  // namespace frugal
