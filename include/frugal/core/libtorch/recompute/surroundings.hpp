// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/autocast_mode.h>

#include <algorithm>
#include <utility>
#include <vector>

#include <frugal/core/libtorch/acting.hpp>
#include <frugal/core/libtorch/generators.hpp>
#include <frugal/inline.hpp>

namespace frugal::detail {

/// The global state that a computation depends on, besides its inputs: generator states, autocast,
/// and whose layer hooks act.
class Surroundings {
 public:
  /// Captures the current state, of the CPU and of these devices.
  FRUGAL_INLINE explicit Surroundings(std::vector<c10::Device> const& devices) {
    add(c10::Device(c10::kCPU));
    for (c10::Device const device : devices) {
      // A dry run on the meta device draws no numbers.
      if (!device.is_cpu() && !device.is_meta()) add(device);
    }
  }

  /// Captures the current state, of the same devices as another one.
  FRUGAL_INLINE static Surroundings now_like(Surroundings const& other) {
    std::vector<c10::Device> devices;
    devices.reserve(other.devices_.size());
    for (auto const& each : other.devices_) devices.push_back(each.device);
    return Surroundings(devices);
  }

  FRUGAL_INLINE void put_back() const {
    for (OfDevice const& each : devices_) {
      at::Generator generator = each.generator;
      set_state_of_generator(generator, each.state);
      at::autocast::set_autocast_enabled(each.device.type(), each.autocast);
      at::autocast::set_autocast_dtype(each.device.type(), each.type);
    }
    at::autocast::set_autocast_cache_enabled(cached_);
    acting = acting_;
  }

 private:
  struct OfDevice {
    c10::Device device;
    at::Generator generator;
    at::Tensor state;
    bool autocast;
    at::ScalarType type;
  };

  FRUGAL_INLINE void add(c10::Device device) {
    bool const known = std::any_of(devices_.begin(), devices_.end(),
                                   [&](OfDevice const& each) { return each.device == device; });
    if (known) return;
    at::Generator generator = at::globalContext().defaultGenerator(device);
    at::Tensor state = state_of_generator(generator);
    devices_.push_back({device, std::move(generator), std::move(state),
                        at::autocast::is_autocast_enabled(device.type()),
                        at::autocast::get_autocast_dtype(device.type())});
  }

  std::vector<OfDevice> devices_;
  bool cached_ = at::autocast::is_autocast_cache_enabled();
  void const* acting_ = acting;
};

/// For its lifetime the state is as it was `then`, for a recomputation; afterwards as it was
/// before.
class [[nodiscard]] Within {
 public:
  explicit Within(Surroundings const& then)
      : now_(Surroundings::now_like(then)), recomputed_(std::exchange(recomputing, true)) {
    then.put_back();
    at::autocast::increment_nesting();
  }
  Within(Within const&) = delete;
  Within& operator=(Within const&) = delete;
  ~Within() {
    if (at::autocast::decrement_nesting() == 0) at::autocast::clear_cache();
    now_.put_back();
    recomputing = recomputed_;
  }

 private:
  Surroundings now_;
  bool recomputed_;
};

}  // namespace frugal::detail
