// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/core/Device.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <c10/util/Exception.h>

#include <string>

namespace frugal::detail {

/// A module that computes on one device alone, because its code was compiled for it (StepModule).
class StaysOnDevice {
 public:
  StaysOnDevice() = default;
  StaysOnDevice(StaysOnDevice const&) = default;
  StaysOnDevice& operator=(StaysOnDevice const&) = default;
  virtual ~StaysOnDevice() = default;

  virtual c10::Device own_device() const = 0;
};

/// Number of devices of a type; 0 if LibTorch's backend for it is not linked.
int count_of(c10::DeviceType type);

/// "cpu, cuda:0, cuda:1", for error messages.
std::string devices_here();

[[noreturn]] void refuse_device(std::string what, char const* where, bool cuda_is_linked);

inline bool is_available(c10::Device device) {
  return device.is_cpu() || (device.has_index() ? device.index() : 0) < count_of(device.type());
}

/// Throws DeviceError, which lists the available devices, if the device is not available.
void require_device(c10::Device device, char const* where = "Settings::device");

/// Resolves "cuda" to "cuda:0", or whichever is current, so that it compares equal to the device of
/// tensors. An unavailable device is returned unchanged.
c10::Device with_index(c10::Device device);

/// The device with that name, whether or not it is available. DeviceError if there is no such name.
c10::Device device_from_name(std::string const& name, char const* where);

}  // namespace frugal::detail

#ifndef FRUGAL_COMPILED
#include <frugal/core/libtorch/devices.ipp>
#endif
