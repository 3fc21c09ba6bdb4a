// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/core/run/settings.hpp>

#include <frugal/error.hpp>
#include <frugal/inline.hpp>

namespace frugal::detail {

FRUGAL_INLINE c10::Device device_of_run(DeviceSpec const& asked, torch::nn::Module const& module) {
  if (asked.is_given()) return with_index(asked);
  std::optional<c10::Device> found;
  for (at::Tensor const& each : module.parameters()) {
    if (!each.defined() || found == each.device()) continue;
    if (found) {
      throw DeviceError({.what = "the module's parameters are on " + found->str() + " and on " +
                                 each.device().str(),
                         .where = "Settings::device",
                         .why = "a run is on one device, and none is named",
                         .fix = "Set Settings::device; the module is moved there."});
    }
    found = each.device();
  }
  return found.value_or(c10::Device(c10::kCPU));
}

FRUGAL_INLINE void put_on(c10::Device device, torch::nn::Module& module) {
  require_device(device);
  for (at::Tensor const& each : module.parameters()) {
    if (!each.defined() || each.device() == device) continue;
    module.to(device);
    return;
  }
}

}  // namespace frugal::detail
