// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/report/energy/nvml.hpp>

#include <frugal/inline.hpp>

#include <cstdlib>
#include <string_view>
#include <utility>

namespace frugal::energy {

FRUGAL_INLINE std::optional<std::vector<std::string>> visible_devices(char const* listed) {
  if (listed == nullptr) return {};
  std::vector<std::string> devices;
  std::string_view rest = listed;
  while (!rest.empty()) {
    std::size_t const comma = rest.find(',');
    std::string_view const one = rest.substr(0, comma);
    bool const number = one.find_first_not_of("0123456789") == std::string_view::npos;
    bool const uuid = one.starts_with("GPU-") || one.starts_with("MIG-");
    if (one.empty() || !(number || uuid)) break;
    devices.emplace_back(one);
    rest = comma == std::string_view::npos ? "" : rest.substr(comma + 1);
  }
  return devices;
}

FRUGAL_INLINE std::string name_of_uuid(std::array<unsigned char, 16> const& bytes) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string name = "GPU";
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (i == 0 || i == 4 || i == 6 || i == 8 || i == 10) name += '-';
    name += digits[bytes[i] >> 4U];
    name += digits[bytes[i] & 15U];
  }
  return name;
}

FRUGAL_INLINE double Nvml::joules() {
  for (std::size_t i = 0; i < devices_.size();) {
    if (measure(devices_[i])) {
      ++i;
    } else {
      devices_.erase(devices_.begin() + static_cast<std::ptrdiff_t>(i));
    }
  }
  return joules_;
}

FRUGAL_INLINE bool Nvml::load() {
  find(text_, "nvmlErrorString");
  find(energy_, "nvmlDeviceGetTotalEnergyConsumption");  // not in old drivers
  return find(init_, "nvmlInit_v2") && find(shutdown_, "nvmlShutdown") &&
         find(count_, "nvmlDeviceGetCount_v2") &&
         find(by_index_, "nvmlDeviceGetHandleByIndex_v2") &&
         find(by_uuid_, "nvmlDeviceGetHandleByUUID") && find(power_, "nvmlDeviceGetPowerUsage");
}

FRUGAL_INLINE void Nvml::report(std::string const& device, int failure, bool later) {
  std::string const text = "NVML does not read device " + device + ": " + said(failure);
  if (problem_.empty()) problem_ = text;
  if (later && failure_.empty()) failure_ = text;
}

FRUGAL_INLINE void Nvml::add(std::string const& name) {
  Device device{name, nullptr, false, 0, 0, clock_()};
  bool const number = name.find_first_not_of("0123456789") == std::string::npos;
  int failure = number && name.size() < 6
                    ? by_index_(static_cast<unsigned>(std::strtoul(name.c_str(), nullptr, 10)),
                                &device.handle)
                    : by_uuid_(name.c_str(), &device.handle);
  if (failure == 0) {
    device.counts = energy_ != nullptr && energy_(device.handle, &device.millijoules) == 0;
    if (!device.counts) failure = read_power(device);
  }
  if (failure != 0) {
    report(name, failure);
  } else {
    devices_.push_back(std::move(device));
  }
}

FRUGAL_INLINE int Nvml::read_power(Device& device) const {
  unsigned milliwatts = 0;
  int const failure = power_(device.handle, &milliwatts);
  device.watts = milliwatts * 1e-3;
  return failure;
}

FRUGAL_INLINE bool Nvml::measure(Device& device) {
  if (device.counts) {
    unsigned long long now = 0;
    if (int const failure = energy_(device.handle, &now); failure != 0) {
      report(device.name, failure, true);
      return false;
    }
    // A reloaded driver begins at 0.
    joules_ +=
        static_cast<double>(now >= device.millijoules ? now - device.millijoules : now) * 1e-3;
    device.millijoules = now;
    return true;
  }
  double const before = device.watts;
  if (int const failure = read_power(device); failure != 0) {
    report(device.name, failure, true);
    return false;
  }
  double const now = clock_();
  joules_ += (before + device.watts) / 2 * (now - device.at);
  device.at = now;
  return true;
}

}  // namespace frugal::energy
