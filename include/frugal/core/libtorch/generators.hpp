// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>
#include <ATen/Context.h>
#include <ATen/DeviceAccelerator.h>
#include <c10/core/Device.h>

#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include <frugal/inline.hpp>

namespace frugal::detail {

/// A device's type without its index: "cpu", "cuda".
inline std::string kind_of_device(c10::Device device) {
  return c10::DeviceTypeName(device.type(), /*lower_case=*/true);
}

/// The LibTorch generators that a run on `device` uses, by name: the CPU's and the device's. The
/// name is the device's type, so that a run on "cuda:1" can resume one from "cuda".
FRUGAL_INLINE std::vector<std::pair<std::string, at::Generator>> generators_of(c10::Device device) {
  at::Context& context = at::globalContext();
  std::vector<std::pair<std::string, at::Generator>> all;
  all.emplace_back("cpu", context.defaultGenerator(c10::Device(c10::kCPU)));
  if (!device.is_cpu()) {
    all.emplace_back(kind_of_device(device), context.defaultGenerator(device));
  }
  return all;
}

FRUGAL_INLINE at::Tensor state_of_generator(at::Generator generator) {
  std::scoped_lock const lock(generator.mutex());
  return generator.get_state();
}

FRUGAL_INLINE void set_state_of_generator(at::Generator& generator, at::Tensor const& state) {
  std::scoped_lock const lock(generator.mutex());
  generator.set_state(state);
}

/// Saved states of a run's generators.
class GeneratorStates {
 public:
  FRUGAL_INLINE void take(c10::Device device) {
    states_.clear();
    for (auto const& [name, generator] : generators_of(device)) add(generator);
  }
  /// Those of a run on `device`, and all that at::manual_seed changes: one per accelerator.
  FRUGAL_INLINE void take_seeded(c10::Device device) {
    take(device);
    auto const accelerator = at::getAccelerator();
    if (!accelerator) return;
    at::Context& context = at::globalContext();
    auto const count = context.getAcceleratorHooksInterface(accelerator).deviceCount();
    for (c10::DeviceIndex i = 0; i < count; ++i) {
      add(context.defaultGenerator(c10::Device(*accelerator, i)));
    }
  }
  void restore() {
    for (auto& [generator, state] : states_) set_state_of_generator(generator, state);
  }

 private:
  FRUGAL_INLINE void add(at::Generator const& generator) {
    for (auto const& [known, state] : states_) {
      if (known == generator) return;
    }
    states_.emplace_back(generator, state_of_generator(generator));
  }

  std::vector<std::pair<at::Generator, at::Tensor>> states_;
};

/// Restores all generators that at::manual_seed changes at the end of a scope.
class [[nodiscard]] KeepGenerators {
 public:
  FRUGAL_INLINE KeepGenerators() { states_.take_seeded(c10::Device(c10::kCPU)); }
  KeepGenerators(KeepGenerators const&) = delete;
  KeepGenerators& operator=(KeepGenerators const&) = delete;
  ~KeepGenerators() { states_.restore(); }

 private:
  GeneratorStates states_;
};

}  // namespace frugal::detail
