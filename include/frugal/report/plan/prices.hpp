// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/error.hpp>
#include <frugal/inline.hpp>
#include <frugal/report/plan/device_table.hpp>
#include <frugal/report/plan/money.hpp>
#include <frugal/report/plan/near_names.hpp>
#include <frugal/report/plan/require.hpp>

#include <cmath>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace frugal::plan {

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

  FRUGAL_INLINE PricePerDevice per_device() const {
    if (auto const* const price = std::get_if<PricePerDevice>(&listed_)) return *price;
    return plan::per_device(std::get<PricePerNode>(listed_), devices_);
  }
  FRUGAL_INLINE PricePerNode per_node() const {
    if (auto const* const price = std::get_if<PricePerNode>(&listed_)) return *price;
    return plan::per_node(std::get<PricePerDevice>(listed_), devices_);
  }

  /// The devices that are paid for if so many train: a price per node is one of whole nodes.
  double billed(double devices) const {
    return is_per_node() ? std::ceil(devices / devices_) * devices_ : devices;
  }

 private:
  FRUGAL_INLINE static unsigned checked(unsigned devices) {
    detail::require_at_least_one("devices of a node", devices);
    return devices;
  }

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
/// price file (price_file.hpp) replaces all of them.
class PriceTable {
 public:
  PriceTable() = default;
  PriceTable(DeviceTable devices, std::vector<Offer> offers)
      : devices_(std::move(devices)), offers_(std::move(offers)) {}

  FRUGAL_INLINE static PriceTable built_in() {
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

  DeviceTable const& devices() const { return devices_; }
  std::vector<Offer> const& offers() const { return offers_; }

  /// Throws SettingsError for an unknown name, and names those that are near.
  FRUGAL_INLINE Offer const& offer(std::string_view name) const {
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

  /// What is known for a device, named as the table or as a driver names it. Examples are left out:
  /// no bill comes from an example that was not asked for.
  FRUGAL_INLINE std::vector<Offer const*> offers_of(std::string_view model) const {
    std::vector<Offer const*> found;
    Device const* const device = devices_.find(model);
    if (device == nullptr) return found;
    for (Offer const& each : offers_) {
      if (!each.example && devices_.find(each.device) == device) found.push_back(&each);
    }
    return found;
  }

 private:
  DeviceTable devices_;
  std::vector<Offer> offers_;
};

}  // namespace frugal::plan
