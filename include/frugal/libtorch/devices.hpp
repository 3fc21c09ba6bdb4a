// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/core/Device.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <c10/util/Exception.h>

#include <string>
#include <utility>

#include <frugal/error.hpp>

namespace frugal::detail {

/// How many devices of a type this process has; 0 where LibTorch's part for it is not linked.
inline int count_of(c10::DeviceType type) {
  if (!c10::impl::hasDeviceGuardImpl(type)) return 0;
  return c10::impl::getDeviceGuardImpl(type)->deviceCount();
}

/// "cpu, cuda:0, cuda:1", for messages.
inline std::string devices_here() {
  std::string text = "cpu";
  for (int i = 0; i < static_cast<int>(c10::COMPILE_TIME_MAX_DEVICE_TYPES); ++i) {
    auto const type = static_cast<c10::DeviceType>(i);
    // Meta tensors have no values, and nothing can be trained there.
    if (type == c10::DeviceType::CPU || type == c10::DeviceType::Meta) continue;
    for (int index = 0; index < count_of(type); ++index) {
      text += ", " + c10::Device(type, static_cast<c10::DeviceIndex>(index)).str();
    }
  }
  return text;
}

[[noreturn]] inline void refuse_device(std::string what, char const* where, bool cuda_is_linked) {
  throw DeviceError({.what = std::move(what),
                     .where = where,
                     .why = "this process has " + devices_here(),
                     .fix = cuda_is_linked ? "Name one of these."
                                           : "Name one of these; for CUDA link the CUDA flavour "
                                             "of LibTorch (FRUGAL_CUDA=ON)."});
}

/// Throws DeviceError, with those that are there, for a device that this process lacks.
inline void require_device(c10::Device device, char const* where = "Settings::device") {
  if (device.is_cpu()) return;
  if ((device.has_index() ? device.index() : 0) < count_of(device.type())) return;
  refuse_device("there is no device " + device.str(), where,
                !device.is_cuda() || c10::impl::hasDeviceGuardImpl(device.type()));
}

/// "cuda" is "cuda:0" if that is the current one, so that it compares equal to where tensors are.
/// One that this process lacks stays as it is.
inline c10::Device with_index(c10::Device device) {
  if (device.is_cpu() || device.has_index() || count_of(device.type()) == 0) return device;
  return c10::impl::getDeviceGuardImpl(device.type())->getDevice();
}

/// The device of that name, with its index. DeviceError for text that names none, and for a device
/// that is not there.
inline c10::Device device_named(std::string const& name, char const* where) {
  c10::Device device(c10::DeviceType::CPU);
  try {
    device = c10::Device(name);
  } catch (c10::Error const&) {
    refuse_device("'" + name + "' names no device", where, true);
  }
  require_device(device, where);
  return with_index(device);
}

}  // namespace frugal::detail
