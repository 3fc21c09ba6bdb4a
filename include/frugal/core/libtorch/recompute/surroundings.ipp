// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/core/libtorch/recompute/surroundings.hpp>

#include <frugal/core/libtorch/generators.hpp>
#include <frugal/inline.hpp>

#include <algorithm>

namespace frugal::detail {

FRUGAL_INLINE Surroundings::Surroundings(std::vector<c10::Device> const& devices) {
  add(c10::Device(c10::kCPU));
  for (c10::Device const device : devices) {
    // A dry run on the meta device draws no numbers.
    if (!device.is_cpu() && !device.is_meta()) add(device);
  }
}

FRUGAL_INLINE Surroundings Surroundings::now_like(Surroundings const& other) {
  std::vector<c10::Device> devices;
  devices.reserve(other.devices_.size());
  for (auto const& each : other.devices_) devices.push_back(each.device);
  return Surroundings(devices);
}

FRUGAL_INLINE void Surroundings::put_back() const {
  for (OfDevice const& each : devices_) {
    at::Generator generator = each.generator;
    set_state_of_generator(generator, each.state);
    at::autocast::set_autocast_enabled(each.device.type(), each.autocast);
    at::autocast::set_autocast_dtype(each.device.type(), each.type);
  }
  at::autocast::set_autocast_cache_enabled(cached_);
  acting = acting_;
}

FRUGAL_INLINE void Surroundings::add(c10::Device device) {
  bool const known = std::any_of(devices_.begin(), devices_.end(),
                                 [&](OfDevice const& each) { return each.device == device; });
  if (known) return;
  at::Generator generator = at::globalContext().defaultGenerator(device);
  at::Tensor state = state_of_generator(generator);
  devices_.push_back({device, std::move(generator), std::move(state),
                      at::autocast::is_autocast_enabled(device.type()),
                      at::autocast::get_autocast_dtype(device.type())});
}

}  // namespace frugal::detail
