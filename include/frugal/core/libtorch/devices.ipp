// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/core/libtorch/devices.hpp>

#include <frugal/error.hpp>
#include <frugal/inline.hpp>

#include <cstddef>
#include <string>
#include <utility>

namespace frugal::detail {

FRUGAL_INLINE int count_of(c10::DeviceType type) {
  if (!c10::impl::hasDeviceGuardImpl(type)) return 0;
  return c10::impl::getDeviceGuardImpl(type)->deviceCount();
}

FRUGAL_INLINE std::string devices_here() {
  std::string text = "cpu";
  for (int i = 0; i < static_cast<int>(c10::COMPILE_TIME_MAX_DEVICE_TYPES); ++i) {
    auto const type = static_cast<c10::DeviceType>(i);
    // Meta tensors have no values, so nothing can train there.
    if (type == c10::DeviceType::CPU || type == c10::DeviceType::Meta) continue;
    for (int index = 0; index < count_of(type); ++index) {
      text += ", " + c10::Device(type, static_cast<c10::DeviceIndex>(index)).str();
    }
  }
  return text;
}

FRUGAL_INLINE void refuse_device(std::string what, char const* where, bool cuda_is_linked) {
  throw DeviceError({.what = std::move(what),
                     .where = where,
                     .why = "this process has " + devices_here(),
                     .fix = cuda_is_linked ? "Use one of these."
                                           : "Use one of these; for CUDA link the CUDA flavour "
                                             "of LibTorch (FRUGAL_CUDA=ON)."});
}

FRUGAL_INLINE void require_device(c10::Device device, char const* where) {
  if (is_available(device)) return;
  refuse_device("there is no device " + device.str(), where,
                !device.is_cuda() || c10::impl::hasDeviceGuardImpl(device.type()));
}

FRUGAL_INLINE c10::Device with_index(c10::Device device) {
  if (device.is_cpu() || device.has_index() || count_of(device.type()) == 0) return device;
  return c10::impl::getDeviceGuardImpl(device.type())->getDevice();
}

FRUGAL_INLINE c10::Device device_from_name(std::string const& name, char const* where) {
  try {
    c10::Device const device(name);
    // LibTorch keeps the last eight bits of a number, so that its "cuda:256" is cuda:0.
    std::size_t const colon = name.find(':');
    if (colon == std::string::npos || name.substr(colon + 1) == std::to_string(device.index())) {
      return device;
    }
  } catch (c10::Error const&) {
  }
  refuse_device("'" + name + "' names no device", where, true);
}

}  // namespace frugal::detail
