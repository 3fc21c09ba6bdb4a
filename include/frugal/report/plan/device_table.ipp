// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/report/plan/device_table.hpp>

#include <frugal/error.hpp>
#include <frugal/inline.hpp>
#include <frugal/report/plan/near_names.hpp>

namespace frugal::plan {

FRUGAL_INLINE double Device::peak(std::string_view format) const {
  if (auto const found = peaks.find(format); found != peaks.end()) return found->second;
  std::string known;
  for (auto const& each : peaks) known += (known.empty() ? "" : ", ") + each.first;
  throw SettingsError(
      {.what = "no peak of format \"" + std::string(format) + "\" is known",
       .where = name,
       .why = known.empty() ? "the table has no peak of this device" : "known are " + known,
       .fix = "Name one of these, or give \"tflops\" in a price file."});
}

FRUGAL_INLINE DeviceTable DeviceTable::built_in() {
  DeviceTable table;
  for (detail::MemoryFacts const& facts : detail::memory_facts) {
    Device device{.name = std::string(facts.name),
                  .memory = Gigabytes(facts.gigabytes),
                  .bandwidth = GigabytesPerSecond(facts.gigabytes_per_second)};
    for (std::string_view const format : watch::peak_formats) {
      auto const peak = watch::peak_flops(facts.name, format);
      if (peak) device.peaks[std::string(format)] = *peak;
    }
    table.devices_.push_back(std::move(device));
  }
  return table;
}

FRUGAL_INLINE void DeviceTable::put(Device device) {
  for (Device& each : devices_) {
    if (detail::lower(each.name) == detail::lower(device.name)) {
      each = std::move(device);
      return;
    }
  }
  devices_.insert(devices_.begin(), std::move(device));
}

FRUGAL_INLINE Device const* DeviceTable::find(std::string_view model) const {
  for (Device const& each : devices_) {
    if (detail::lower(each.name) == detail::lower(model)) return &each;
  }
  std::vector<std::string> const words = detail::words_of(model);
  for (Device const& each : devices_) {
    std::vector<std::string> const own = detail::words_of(each.name);
    bool const all = std::all_of(own.begin(), own.end(),
                                 [&](std::string const& word) { return has(words, word); });
    if (all && !own.empty() && has(words, "mig") == has(own, "mig")) return &each;
  }
  return nullptr;
}

FRUGAL_INLINE Device const& DeviceTable::at(std::string_view model) const {
  if (Device const* const found = find(model)) return *found;
  throw SettingsError({.what = "the device is not in the table",
                       .where = std::string(model),
                       .why = detail::near_names(model, names()),
                       .fix = "Name one of these, or describe the device in a price file."});
}

FRUGAL_INLINE std::vector<std::string> DeviceTable::names() const {
  std::vector<std::string> names;
  for (Device const& each : devices_) names.push_back(each.name);
  return names;
}

}  // namespace frugal::plan
