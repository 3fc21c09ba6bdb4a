// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/core/run/gauges.hpp>
#include <frugal/inline.hpp>

namespace frugal {

FRUGAL_INLINE void Gauges::set(std::string_view name, double value) {
  for (Item& item : items_) {
    if (item.first == name) {
      item.second = value;
      return;
    }
  }
  items_.emplace_back(name, value);
}

FRUGAL_INLINE std::optional<double> Gauges::find(std::string_view name) const {
  for (Item const& item : items_) {
    if (item.first == name) return item.second;
  }
  return {};
}

}  // namespace frugal
