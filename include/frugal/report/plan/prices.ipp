// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/report/plan/prices.hpp>

#include <frugal/error.hpp>
#include <frugal/inline.hpp>
#include <frugal/report/plan/require.hpp>

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

FRUGAL_INLINE PricePerDevice Price::per_device() const {
  if (auto const* const price = std::get_if<PricePerDevice>(&listed_)) return *price;
  return plan::per_device(std::get<PricePerNode>(listed_), devices_);
}

FRUGAL_INLINE PricePerNode Price::per_node() const {
  if (auto const* const price = std::get_if<PricePerNode>(&listed_)) return *price;
  return plan::per_node(std::get<PricePerDevice>(listed_), devices_);
}

FRUGAL_INLINE unsigned Price::checked(unsigned devices) {
  detail::require_at_least_one("devices of a node", devices);
  return devices;
}

FRUGAL_INLINE PriceTable PriceTable::built_in() {
  constexpr char const* source =
      "example, to be replaced: list price quoted for AWS EC2, us-east-1, Linux";
  auto const offer = [&](char const* name, char const* device, unsigned devices, double node,
                         char const* as_of) {
    return Offer{.name = name,
                 .device = device,
                 .devices = devices,
                 .on_demand = Price(PricePerNode(node), devices),
                 .as_of = as_of,
                 .source = source,
                 .example = true};
  };
  std::vector<Offer> offers{offer("p5.48xlarge", "H100", 8, 98.32, "2023"),
                            offer("p4d.24xlarge", "A100 40GB", 8, 32.77, "2023"),
                            offer("g4dn.xlarge", "Tesla T4", 1, 0.526, "2023")};
  offers[1].spot = Price(PricePerNode(9.83), 8);
  return {DeviceTable::built_in(), std::move(offers)};
}

FRUGAL_INLINE Offer const& PriceTable::offer(std::string_view name) const {
  for (Offer const& each : offers_) {
    if (detail::lower(each.name) == detail::lower(name)) return each;
  }
  std::vector<std::string> names;
  for (Offer const& each : offers_) names.push_back(each.name);
  throw SettingsError({.what = "no price has that name",
                       .where = std::string(name),
                       .why = detail::near_names(name, names),
                       .fix = "Name one of these, or add it to a price file."});
}

FRUGAL_INLINE std::vector<Offer const*> PriceTable::offers_of(std::string_view model) const {
  std::vector<Offer const*> found;
  Device const* const device = devices_.find(model);
  if (device == nullptr) return found;
  for (Offer const& each : offers_) {
    if (!each.example && devices_.find(each.device) == device) found.push_back(&each);
  }
  return found;
}

}  // namespace frugal::plan
