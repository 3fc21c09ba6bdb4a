// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>
#include <ATen/Context.h>
#include <ATen/DeviceAccelerator.h>
#include <c10/core/Device.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace frugal::detail {

/// A device's type without its index: "cpu", "cuda".
inline std::string kind_of_device(c10::Device device) {
  return c10::DeviceTypeName(device.type(), /*lower_case=*/true);
}

/// The LibTorch generators that a run on `device` uses, by name: the CPU's and the device's. The
/// name is the device's type, so that a run on "cuda:1" can resume one from "cuda".
std::vector<std::pair<std::string, at::Generator>> generators_of(c10::Device device);

at::Tensor state_of_generator(at::Generator generator);

void set_state_of_generator(at::Generator& generator, at::Tensor const& state);

/// Saved states of a run's generators.
class GeneratorStates {
 public:
  void take(c10::Device device);
  /// Those of a run on `device`, and all that at::manual_seed changes: one per accelerator.
  void take_seeded(c10::Device device);
  void restore() {
    for (auto& [generator, state] : states_) set_state_of_generator(generator, state);
  }

 private:
  void add(at::Generator const& generator);

  std::vector<std::pair<at::Generator, at::Tensor>> states_;
};

/// Restores all generators that at::manual_seed changes at the end of a scope.
class [[nodiscard]] KeepGenerators {
 public:
  KeepGenerators();
  KeepGenerators(KeepGenerators const&) = delete;
  KeepGenerators& operator=(KeepGenerators const&) = delete;
  ~KeepGenerators() { states_.restore(); }

 private:
  GeneratorStates states_;
};

}  // namespace frugal::detail

namespace frugal {

/// What `build()` returns, with LibTorch's generators seeded while it runs, and as they were afterwards: the initial
/// weights of a module follow from the seed alone.
///
///     auto net = fr::seeded(settings.seed, [] { return Net(); });
template <class Build>
auto seeded(std::uint64_t seed, Build&& build) {
  detail::KeepGenerators const kept;
  at::manual_seed(seed);
  return std::forward<Build>(build)();
}

}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/core/libtorch/generators.ipp>
#endif
