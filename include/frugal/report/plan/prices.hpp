// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <filesystem>
#include <functional>
#include <initializer_list>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <frugal/base/json.hpp>
#include <frugal/report/plan/money.hpp>
#include <frugal/report/plan/peak.hpp>

namespace frugal::plan {

/// What a data sheet says of a device.
struct Device {
  std::string name{};
  std::map<std::string, double, std::less<>>
      peaks{};  ///< dense FLOP/s by format: "BF16"; of INT8, OP/s
  Gigabytes memory{};
  GigabytesPerSecond bandwidth{};  ///< of its memory

  /// Throws SettingsError if the device has no such format, and lists those it has.
  double peak(std::string_view format) const;
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

  static DeviceTable built_in();

  std::vector<Device> const& devices() const { return devices_; }

  /// Replaces the device of that name, or adds one that is found before all others.
  void put(Device device);

  /// The device of that name; otherwise the first whose words are all in `model`, so that what a
  /// driver says ("NVIDIA A100-SXM4-80GB") finds "A100 80GB". Null if there is none. A part of a
  /// device ("NVIDIA H100 80GB HBM3 MIG 1g.10gb") is not the device.
  Device const* find(std::string_view model) const;

  /// Throws SettingsError for an unknown device, and names those that are near.
  Device const& at(std::string_view model) const;

  std::vector<std::string> names() const;

 private:
  static bool has(std::vector<std::string> const& words, std::string_view word) {
    return std::find(words.begin(), words.end(), word) != words.end();
  }

  std::vector<Device> devices_;
};

/// A price as it is listed, per device or per node, with the devices of a node.
class Price {
 public:
  /// Throws SettingsError for a node of 0 devices.
  Price(PricePerDevice price, unsigned devices_of_node)
      : listed_(price), devices_(checked(devices_of_node)) {}
  Price(PricePerNode price, unsigned devices_of_node)
      : listed_(price), devices_(checked(devices_of_node)) {}

  bool is_per_node() const { return std::holds_alternative<PricePerNode>(listed_); }
  unsigned devices_of_node() const { return devices_; }

  PricePerDevice per_device() const;
  PricePerNode per_node() const;

  /// The devices that are paid for if so many train: a price per node is one of whole nodes.
  double billed(double devices) const {
    return is_per_node() ? std::ceil(devices / devices_) * devices_ : devices;
  }

 private:
  static unsigned checked(unsigned devices);

  std::variant<PricePerDevice, PricePerNode> listed_;
  unsigned devices_;
};

/// A machine for rent.
struct Offer {
  std::string name{};    ///< of the vendor: "p4d.24xlarge"
  std::string device{};  ///< of the device table
  unsigned devices = 1;  ///< of one node
  Price on_demand{PricePerDevice(0), 1};
  std::optional<Price> spot{};
  std::string as_of{};   ///< when the prices were looked up
  std::string source{};  ///< where
  bool example = false;  ///< of the built-in table: to be replaced before money depends on it
};

/// Devices, and what they cost. The built-in prices are dated examples that show the arithmetic; a
/// price file (read_prices) replaces all of them.
class PriceTable {
 public:
  PriceTable() = default;
  PriceTable(DeviceTable devices, std::vector<Offer> offers)
      : devices_(std::move(devices)), offers_(std::move(offers)) {}

  static PriceTable built_in();

  DeviceTable const& devices() const { return devices_; }
  std::vector<Offer> const& offers() const { return offers_; }

  /// Throws SettingsError for an unknown name, and names those that are near.
  Offer const& offer(std::string_view name) const;

  /// What is known for a device, named as the table or as a driver names it. Examples are left out:
  /// no bill comes from an example that was not asked for.
  std::vector<Offer const*> offers_of(std::string_view model) const;

 private:
  DeviceTable devices_;
  std::vector<Offer> offers_;
};

namespace detail {

/// "12:7": line and column of a byte, both from 1. A column counts characters, as editors do.
std::string line_and_column(std::string_view text, std::size_t byte);

/// Reads one price file. Every fault is a SettingsError with line and column.
class PriceFile {
  using Json = frugal::detail::Json;

 public:
  /// A byte-order mark at the beginning is skipped, as editors do.
  PriceFile(std::string_view text, std::string name) : text_(text), name_(std::move(name)) {
    constexpr std::string_view mark = "\xEF\xBB\xBF";
    if (text_.starts_with(mark)) text_.remove_prefix(mark.size());
  }

  PriceTable read() const;

 private:
  Device device(Json const& entry) const;

  Offer offer(Json const& entry, DeviceTable const& devices) const;

  Price price(Json const& entry, char const* key, std::string_view per, unsigned devices) const;

  /// Refuses what is no object, a member that is there twice and, if `names` has any, unknown ones.
  void only(Json const& value, std::initializer_list<std::string_view> names) const;
  /// `folded`: as the tables find names, whatever their case.
  void unique(std::vector<std::string>& seen, std::string const& name, Json const& value,
              bool folded = false) const;
  Json const& member(Json const& parent, std::string_view key) const;
  std::vector<Json const*> array(Json const& parent, char const* key) const;
  std::string text(Json const& parent, char const* key, bool needed = false) const;
  double number(Json const& parent, std::string_view key) const;
  double above_zero(Json const& parent, std::string_view key) const;
  /// Refuses values that no device or price reaches, and that would overflow in the arithmetic.
  void at_most(Json const& parent, std::string_view key, double value) const {
    if (value > 1e9) fail(member(parent, key), "\"" + std::string(key) + "\" is above 1e9");
  }

  [[noreturn]] void fail(Json const& value, std::string why) const {
    fail(value.at(), std::move(why));
  }
  [[noreturn]] void fail(std::size_t byte, std::string why) const;

  std::string_view text_;
  std::string name_;
};

}  // namespace detail

/// Devices and prices from the text of a price file; `name` is for messages. Its prices replace all
/// built-in ones; its devices are added to the built-in ones, or replace those of the same name.
inline PriceTable parse_prices(std::string_view text, std::string name) {
  return detail::PriceFile(text, std::move(name)).read();
}

/// Throws StoreError if the file cannot be read.
PriceTable read_prices(std::filesystem::path const& path);

}  // namespace frugal::plan

#ifndef FRUGAL_COMPILED
#include <frugal/report/plan/prices.ipp>
#endif
