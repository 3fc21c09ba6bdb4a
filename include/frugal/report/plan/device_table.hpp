// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/error.hpp>
#include <frugal/inline.hpp>
#include <frugal/report/plan/money.hpp>
#include <frugal/report/plan/near_names.hpp>
#include <frugal/report/plan/peak.hpp>

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace frugal::plan {

/// What a data sheet says of a device.
struct Device {
  std::string name{};
  std::map<std::string, double, std::less<>>
      peaks{};  ///< dense FLOP/s by format: "BF16"; of INT8, OP/s
  Gigabytes memory{};
  GigabytesPerSecond bandwidth{};  ///< of its memory

  /// Throws SettingsError if the device has no such format, and lists those it has.
  FRUGAL_INLINE double peak(std::string_view format) const {
    if (auto const found = peaks.find(format); found != peaks.end()) return found->second;
    std::string known;
    for (auto const& each : peaks) known += (known.empty() ? "" : ", ") + each.first;
    throw SettingsError(
        {.what = "no peak of format \"" + std::string(format) + "\" is known",
         .where = name,
         .why = known.empty() ? "the table has no peak of this device" : "known are " + known,
         .fix = "Name one of these, or give \"tflops\" in a price file."});
  }
};

namespace detail {

struct MemoryFacts {
  std::string_view name;
  double gigabytes;
  double gigabytes_per_second;
};

// Memory and its bandwidth, from the vendors' data sheets; peaks are those of report/plan/peak.hpp.
inline constexpr std::array memory_facts{
    MemoryFacts{"H200 NVL", 141, 4800},
    MemoryFacts{"H200", 141, 4800},
    MemoryFacts{"H100 PCIe", 80, 2000},
    MemoryFacts{"H100 NVL", 94, 3900},
    MemoryFacts{"H100", 80, 3350},
    MemoryFacts{"A100 80GB PCIe", 80, 1935},
    MemoryFacts{"A100 80GB", 80, 2039},
    MemoryFacts{"A100 40GB", 40, 1555},
    MemoryFacts{"L40S", 48, 864},
    MemoryFacts{"L40", 48, 864},
    MemoryFacts{"L4", 24, 300},
    MemoryFacts{"A10G", 24, 600},
    MemoryFacts{"A10", 24, 600},
    MemoryFacts{"V100-SXM2 32GB", 32, 900},
    MemoryFacts{"V100-SXM2 16GB", 16, 900},
    MemoryFacts{"V100-PCIE 32GB", 32, 900},
    MemoryFacts{"V100-PCIE 16GB", 16, 900},
    MemoryFacts{"Tesla T4", 16, 320},
};

}  // namespace detail

/// Devices by name.
class DeviceTable {
 public:
  DeviceTable() = default;
  explicit DeviceTable(std::vector<Device> devices) : devices_(std::move(devices)) {}

  FRUGAL_INLINE static DeviceTable built_in() {
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

  std::vector<Device> const& devices() const { return devices_; }

  /// Replaces the device of that name, or adds one that is found before all others.
  FRUGAL_INLINE void put(Device device) {
    for (Device& each : devices_) {
      if (detail::lower(each.name) == detail::lower(device.name)) {
        each = std::move(device);
        return;
      }
    }
    devices_.insert(devices_.begin(), std::move(device));
  }

  /// The device of that name; otherwise the first whose words are all in `model`, so that what a
  /// driver says ("NVIDIA A100-SXM4-80GB") finds "A100 80GB". Null if there is none. A part of a
  /// device ("NVIDIA H100 80GB HBM3 MIG 1g.10gb") is not the device.
  FRUGAL_INLINE Device const* find(std::string_view model) const {
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

  /// Throws SettingsError for an unknown device, and names those that are near.
  FRUGAL_INLINE Device const& at(std::string_view model) const {
    if (Device const* const found = find(model)) return *found;
    throw SettingsError({.what = "the device is not in the table",
                         .where = std::string(model),
                         .why = detail::near_names(model, names()),
                         .fix = "Name one of these, or describe the device in a price file."});
  }

  FRUGAL_INLINE std::vector<std::string> names() const {
    std::vector<std::string> names;
    for (Device const& each : devices_) names.push_back(each.name);
    return names;
  }

 private:
  static bool has(std::vector<std::string> const& words, std::string_view word) {
    return std::find(words.begin(), words.end(), word) != words.end();
  }

  std::vector<Device> devices_;
};

}  // namespace frugal::plan
