// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>
#include <ATen/Context.h>
#include <c10/core/Device.h>

#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace frugal::detail {

/// "cpu", "cuda": a device without its number.
inline std::string kind_of_device(c10::Device device) {
  return c10::DeviceTypeName(device.type(), /*lower_case=*/true);
}

/// LibTorch's generators that a run on `device` draws from, by name: the CPU's, and the device's.
/// The name is of the kind of device: a run on "cuda:1" goes on where one on "cuda" was stopped.
inline std::vector<std::pair<std::string, at::Generator>> generators_of(c10::Device device) {
  at::Context& context = at::globalContext();
  std::vector<std::pair<std::string, at::Generator>> all;
  all.emplace_back("cpu", context.defaultGenerator(c10::Device(c10::kCPU)));
  if (!device.is_cpu()) {
    all.emplace_back(kind_of_device(device), context.defaultGenerator(device));
  }
  return all;
}

inline at::Tensor state_of_generator(at::Generator generator) {
  std::scoped_lock const lock(generator.mutex());
  return generator.get_state();
}

inline void set_state_of_generator(at::Generator& generator, at::Tensor const& state) {
  std::scoped_lock const lock(generator.mutex());
  generator.set_state(state);
}

/// Puts the generators back where they were unless it is dismissed; nothing where not `Wanted`.
template <bool Wanted>
class KeepGenerators {
 public:
  explicit KeepGenerators(c10::Device) {}
  void dismiss() {}
};
template <>
class KeepGenerators<true> {
 public:
  explicit KeepGenerators(c10::Device device) : generators_(generators_of(device)) {
    for (auto const& [name, generator] : generators_) {
      states_.push_back(state_of_generator(generator));
    }
  }
  KeepGenerators(KeepGenerators const&) = delete;
  KeepGenerators& operator=(KeepGenerators const&) = delete;
  ~KeepGenerators() {
    for (std::size_t i = 0; i < states_.size(); ++i) {
      set_state_of_generator(generators_[i].second, states_[i]);
    }
  }
  void dismiss() { states_.clear(); }

 private:
  std::vector<std::pair<std::string, at::Generator>> generators_;
  std::vector<at::Tensor> states_;
};

}  // namespace frugal::detail
