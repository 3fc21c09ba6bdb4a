// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/report/cost_meter/devices.hpp>

#include <frugal/inline.hpp>
#include <frugal/report/energy/nvml.hpp>

#include <cstdlib>
#include <utility>

namespace frugal::detail {

FRUGAL_INLINE std::optional<std::vector<std::string>> metered_gpus(
    std::vector<std::array<unsigned char, 16>> const& uuids, char const* visible,
    std::optional<std::size_t> only) {
  std::optional<std::vector<std::string>> names;
  if (uuids.empty()) {
    names = energy::visible_devices(visible);
  } else {
    names.emplace();
    for (auto const& uuid : uuids) names->push_back(energy::name_of_uuid(uuid));
  }
  if (!only) return names;
  std::string name = std::to_string(*only);
  if (names && *only < names->size()) name = (*names)[*only];
  return std::vector<std::string>{std::move(name)};
}

}  // namespace frugal::detail
