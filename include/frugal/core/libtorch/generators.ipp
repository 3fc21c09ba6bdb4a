// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/core/libtorch/generators.hpp>

#include <frugal/inline.hpp>

#include <mutex>

namespace frugal::detail {

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

FRUGAL_INLINE void GeneratorStates::take(c10::Device device) {
  states_.clear();
  for (auto const& [name, generator] : generators_of(device)) add(generator);
}

FRUGAL_INLINE void GeneratorStates::take_seeded(c10::Device device) {
  take(device);
  auto const accelerator = at::getAccelerator();
  if (!accelerator) return;
  at::Context& context = at::globalContext();
  auto const count = context.getAcceleratorHooksInterface(accelerator).deviceCount();
  for (c10::DeviceIndex i = 0; i < count; ++i) {
    add(context.defaultGenerator(c10::Device(*accelerator, i)));
  }
}

FRUGAL_INLINE void GeneratorStates::add(at::Generator const& generator) {
  for (auto const& [known, state] : states_) {
    if (known == generator) return;
  }
  states_.emplace_back(generator, state_of_generator(generator));
}

FRUGAL_INLINE KeepGenerators::KeepGenerators() { states_.take_seeded(c10::Device(c10::kCPU)); }

}  // namespace frugal::detail
