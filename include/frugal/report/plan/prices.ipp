// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/report/plan/prices.hpp>

#include <cmath>
#include <fstream>
#include <optional>
#include <system_error>

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

namespace frugal::plan::detail {

FRUGAL_INLINE std::string line_and_column(std::string_view text, std::size_t byte) {
  std::string_view const before = text.substr(0, byte);
  std::size_t const line =
      1 + static_cast<std::size_t>(std::count(before.begin(), before.end(), '\n'));
  std::size_t const start = before.rfind('\n') + 1;  // npos + 1 is 0
  auto const begins = [](char c) { return (static_cast<unsigned char>(c) & 0xc0U) != 0x80U; };
  std::size_t const column =
      1 + static_cast<std::size_t>(std::count_if(
              before.begin() + static_cast<std::ptrdiff_t>(start), before.end(), begins));
  return std::to_string(line) + ':' + std::to_string(column);
}

FRUGAL_INLINE PriceTable PriceFile::read() const {
  frugal::detail::JsonError error;
  std::optional<Json> const all = Json::parse(std::string(text_), &error);
  if (!all) {
    bool const refused = error.why.find("Handler") != std::string::npos;  // by Json itself
    fail(error.at,
         refused ? "it is not UTF-8, or nests deeper than 64" : "it is not JSON: " + error.why);
  }
  only(*all, {"format", "version", "currency", "devices", "prices"});
  if (text(*all, "format", true) != "frugal prices") {
    fail(member(*all, "format"), "\"format\" does not say \"frugal prices\"");
  }
  if (number(*all, "version") != 1) fail(member(*all, "version"), "this reads version 1");
  if (auto const* const currency = all->find("currency");
      currency != nullptr && text(*all, "currency") != "USD") {
    fail(*currency, "prices are in USD; convert them");
  }
  DeviceTable devices = DeviceTable::built_in();
  std::vector<std::string> names;
  for (Json const* const each : array(*all, "devices")) {
    Device found = device(*each);
    unique(names, found.name, *each, true);
    devices.put(std::move(found));
  }
  names.clear();
  std::vector<Offer> offers;
  for (Json const* const each : array(*all, "prices")) {
    offers.push_back(offer(*each, devices));
    unique(names, offers.back().name, *each, true);
  }
  return {std::move(devices), std::move(offers)};
}

FRUGAL_INLINE Device PriceFile::device(Json const& entry) const {
  only(entry, {"name", "memory_gb", "bandwidth_gb_per_s", "tflops"});
  Device out{.name = text(entry, "name", true),
             .memory = Gigabytes(above_zero(entry, "memory_gb")),
             .bandwidth = GigabytesPerSecond(above_zero(entry, "bandwidth_gb_per_s"))};
  Json const& peaks = member(entry, "tflops");
  only(peaks, {});
  for (Json const& peak : peaks.items()) {
    out.peaks[peak.name()] = above_zero(peaks, peak.name()) * 1e12;
  }
  return out;
}

FRUGAL_INLINE Offer PriceFile::offer(Json const& entry, DeviceTable const& devices) const {
  only(entry, {"name", "device", "devices", "per", "on_demand", "spot", "as_of", "source"});
  Offer out{.name = text(entry, "name", true), .device = text(entry, "device", true)};
  if (devices.find(out.device) == nullptr) {
    fail(member(entry, "device"), "the device \"" + out.device + "\" is not in the table; " +
                                      near_names(out.device, devices.names()));
  }
  std::string const per = text(entry, "per", true);
  if (per != "device" && per != "node") {
    fail(member(entry, "per"), "\"per\" is neither \"device\" nor \"node\"");
  }
  if (per == "node" || entry.find("devices") != nullptr) {
    double const count = number(entry, "devices");
    if (count < 1 || count > 4096 || count != std::floor(count)) {
      fail(member(entry, "devices"), "\"devices\" is not a whole number from 1 to 4096");
    }
    out.devices = static_cast<unsigned>(count);
  }
  out.on_demand = price(entry, "on_demand", per, out.devices);
  if (entry.find("spot") != nullptr) out.spot = price(entry, "spot", per, out.devices);
  out.as_of = text(entry, "as_of");
  out.source = text(entry, "source");
  return out;
}

FRUGAL_INLINE Price PriceFile::price(Json const& entry, char const* key, std::string_view per,
                                     unsigned devices) const {
  double const value = number(entry, key);
  if (value < 0)
    fail(member(entry, key), "\"" + std::string(key) + "\" is negative: a price is 0 or more");
  at_most(entry, key, value);
  if (per == "node") return {PricePerNode(value), devices};
  return {PricePerDevice(value), devices};
}

FRUGAL_INLINE void PriceFile::only(Json const& value,
                                   std::initializer_list<std::string_view> names) const {
  if (!value.is(Json::Kind::object)) fail(value, "an object { } goes here");
  std::vector<std::string> seen;
  for (Json const& item : value.items()) {
    bool const known =
        names.size() == 0 || std::find(names.begin(), names.end(), item.name()) != names.end();
    if (!known) {
      fail(item, "\"" + item.name() + "\" is not known; " +
                     near_names(item.name(), {names.begin(), names.end()}));
    }
    unique(seen, item.name(), item);
  }
}

FRUGAL_INLINE void PriceFile::unique(std::vector<std::string>& seen, std::string const& name,
                                     Json const& value, bool folded) const {
  std::string const known = folded ? lower(name) : name;
  if (std::find(seen.begin(), seen.end(), known) != seen.end()) {
    fail(value, "\"" + name + "\" is there twice");
  }
  seen.push_back(known);
}

FRUGAL_INLINE PriceFile::Json const& PriceFile::member(Json const& parent,
                                                       std::string_view key) const {
  Json const* const found = parent.find(key);
  if (found == nullptr) fail(parent, "\"" + std::string(key) + "\" is missing");
  return *found;
}

FRUGAL_INLINE std::vector<PriceFile::Json const*> PriceFile::array(Json const& parent,
                                                                   char const* key) const {
  std::vector<Json const*> items;
  Json const* const found = parent.find(key);
  if (found == nullptr) return items;
  if (!found->is(Json::Kind::array))
    fail(*found, "\"" + std::string(key) + "\" is not an array [ ]");
  for (Json const& each : found->items()) items.push_back(&each);
  return items;
}

FRUGAL_INLINE std::string PriceFile::text(Json const& parent, char const* key, bool needed) const {
  if (!needed && parent.find(key) == nullptr) return "";
  Json const& value = member(parent, key);
  if (!value.is(Json::Kind::text)) fail(value, "\"" + std::string(key) + "\" is not a string");
  if (needed && value.text().empty()) fail(value, "\"" + std::string(key) + "\" is empty");
  return value.text();
}

FRUGAL_INLINE double PriceFile::number(Json const& parent, std::string_view key) const {
  Json const& value = member(parent, key);
  auto const found = value.as_double();
  if (!found) fail(value, "\"" + std::string(key) + "\" is not a number");
  return *found;
}

FRUGAL_INLINE double PriceFile::above_zero(Json const& parent, std::string_view key) const {
  double const value = number(parent, key);
  if (!(value > 0)) fail(member(parent, key), "\"" + std::string(key) + "\" is not above 0");
  at_most(parent, key, value);
  return value;
}

FRUGAL_INLINE void PriceFile::fail(std::size_t byte, std::string why) const {
  throw SettingsError({.what = "the price file cannot be used",
                       .where = name_ + ':' + line_and_column(text_, byte),
                       .why = std::move(why),
                       .fix = "Correct the file; docs/plan.md has a complete one."});
}

}  // namespace frugal::plan::detail

namespace frugal::plan {

FRUGAL_INLINE PriceTable read_prices(std::filesystem::path const& path) {
  std::error_code ignored;  // what cannot be looked at cannot be opened either
  std::ifstream file;
  if (!std::filesystem::is_directory(path, ignored)) file.open(path, std::ios::binary);
  std::string const text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  if (!file.is_open() || file.bad()) {
    throw StoreError({.what = "the price file cannot be read",
                      .where = path.string(),
                      .why = "",
                      .fix = "Check the path and its permissions."});
  }
  return parse_prices(text, path.string());
}

}  // namespace frugal::plan
