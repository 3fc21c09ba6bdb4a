// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/report/plan/device_table.hpp>
#include <frugal/report/plan/money.hpp>

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
/// price file (price_file.hpp) replaces all of them.
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

}  // namespace frugal::plan

#ifndef FRUGAL_COMPILED
#include <frugal/report/plan/prices.ipp>
#endif
