// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdlib>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <frugal/inline.hpp>
#include <frugal/report/energy/nvml.hpp>

namespace frugal::detail {

/// The GPUs whose energy counts for a run, as NVML knows them; nothing: all of the machine.
/// `uuids` are those that CUDA shows to this process, in its order; without any (a build without
/// CUDA) CUDA_VISIBLE_DEVICES is read instead. `only`: the index of the one GPU that is billed, if
/// it is one: the others that are visible may run other jobs.
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
