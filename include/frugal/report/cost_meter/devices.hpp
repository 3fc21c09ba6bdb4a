// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace frugal::detail {

/// The GPUs whose energy counts for a run, as NVML knows them; nothing: all of the machine.
/// `uuids` are those that CUDA shows to this process, in its order; without any (a build without
/// CUDA) CUDA_VISIBLE_DEVICES is read instead. `only`: the index of the one GPU that is billed, if
/// it is one: the others that are visible may run other jobs.
std::optional<std::vector<std::string>> metered_gpus(
    std::vector<std::array<unsigned char, 16>> const& uuids, char const* visible,
    std::optional<std::size_t> only);

}  // namespace frugal::detail

#ifndef FRUGAL_COMPILED
#include <frugal/report/cost_meter/devices.ipp>
#endif
