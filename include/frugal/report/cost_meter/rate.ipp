// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/report/cost_meter/rate.hpp>

#include <frugal/base/number_text.hpp>
#include <frugal/error.hpp>
#include <frugal/inline.hpp>
#include <frugal/report/energy/nvml.hpp>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <system_error>
#include <utility>

namespace frugal::detail {

FRUGAL_INLINE std::optional<std::vector<std::string>> metered_gpus(
    std::vector<std::array<unsigned char, 16>> const& uuids, char const* visible,
    std::optional<std::size_t> only) {
  std::optional<std::vector<std::string>> names;
  if (uuids.empty()) {
    names = energy::visible_devices(visible);
  } else {
    names.emplace();
    for (auto const& uuid : uuids) names->push_back(energy::name_of_uuid(uuid));
  }
  if (!only) return names;
  std::string name = std::to_string(*only);
  if (names && *only < names->size()) name = (*names)[*only];
  return std::vector<std::string>{std::move(name)};
}

FRUGAL_INLINE void refuse_price(std::string what, std::string where, std::string why,
                                std::string fix) {
  throw SettingsError({.what = std::move(what),
                       .where = std::move(where),
                       .why = std::move(why),
                       .fix = std::move(fix)});
}

FRUGAL_INLINE double checked_price(double price, std::string const& where) {
  if (price >= 0 && std::isfinite(price)) return price;
  refuse_price("the price is " + detail::general(price, 6), where, "a price per hour is 0 or more",
               "Give a price in money per hour, or leave it out to count hours.");
}

FRUGAL_INLINE double environment_price(std::string_view text) {
  double price = 0;
  auto const [end, error] = std::from_chars(text.data(), text.data() + text.size(), price);
  if (error != std::errc() || end != text.data() + text.size()) {
    refuse_price("the price \"" + std::string(text) + "\" is not a number", price_variable,
                 "it is read as money per hour", "Set it to a number such as 2.5, or unset it.");
  }
  return checked_price(price, price_variable);
}

FRUGAL_INLINE void refuse_nodes(RateQuestion const& asked) {
  if (asked.nodes == 1) return;
  refuse_price("nodes is " + std::to_string(asked.nodes) + ", and the price is one per device",
               "CostMeter::nodes", "nobody knows how many devices a node has",
               "Set CostMeter::devices to the number of all devices, and leave nodes out.");
}

FRUGAL_INLINE void apply_offer(Rate& rate, RateQuestion const& asked, plan::Offer const& offer) {
  if (asked.spot && !offer.spot) {
    refuse_price("the offer \"" + offer.name + "\" has no spot price", "CostMeter::spot",
                 "the price table lists it on demand only",
                 "Add \"spot\" to the price file, or set CostMeter::price.");
  }
  plan::Price const& price = asked.spot ? *offer.spot : offer.on_demand;
  if (price.is_per_node()) {
    // As many nodes as the devices need, if these were given.
    unsigned const needed = (asked.devices + offer.devices - 1) / offer.devices;
    rate.per = "node";
    rate.nodes = std::max({asked.nodes, needed, asked.machines});
    rate.devices = offer.devices * rate.nodes;
    rate.per_hour = price.per_node().value() * rate.nodes;
  } else {
    refuse_nodes(asked);
    rate.per_hour = price.per_device().value() * asked.devices;
  }
  rate.source = offer.name + (asked.spot ? ", spot" : ", on demand") +
                (offer.as_of.empty() ? "" : ", as of " + offer.as_of);
  if (!offer.example) return;
  rate.warning = "CostMeter: the price of " + offer.name +
                 " is a dated example of the built-in table; set CostMeter::prices to a file with "
                 "your own";
}

FRUGAL_INLINE void per_node(Rate& rate, RateQuestion const& asked) {
  rate.per = "node";
  rate.nodes = asked.nodes;
  rate.knows_devices = asked.devices > 1;
}

FRUGAL_INLINE Rate rate_of(RateQuestion const& asked) {
  if (asked.devices == 0 || asked.nodes == 0) {
    refuse_price(asked.devices == 0 ? "there are 0 devices" : "there are 0 nodes",
                 asked.devices == 0 ? "CostMeter::devices" : "CostMeter::nodes",
                 "a run is billed for one at least", "Give 1 or more.");
  }
  checked_price(asked.other_per_hour, "CostMeter::other_per_hour");
  Rate rate{.devices = asked.devices};
  bool const dollars = asked.currency == "USD";
  if (!dollars && !(asked.offer.empty() && asked.prices.empty())) {
    refuse_price("prices are looked up in USD and shown in " + asked.currency,
                 "CostMeter::currency", "the price table knows no exchange rate",
                 "Set CostMeter::price in your currency, or leave the currency USD.");
  }
  plan::PriceTable const table =
      asked.prices.empty() ? plan::PriceTable::built_in() : plan::read_prices(asked.prices);
  if (auto const* const device = std::get_if<plan::PricePerDevice>(&asked.price)) {
    refuse_nodes(asked);
    rate.per_hour = checked_price(device->value(), "CostMeter::price") * asked.devices;
    rate.source = "CostMeter::price";
  } else if (auto const* const node = std::get_if<plan::PricePerNode>(&asked.price)) {
    per_node(rate, asked);
    rate.per_hour = checked_price(node->value(), "CostMeter::price") * asked.nodes;
    rate.source = "CostMeter::price";
  } else if (!asked.offer.empty()) {
    apply_offer(rate, asked, table.offer(asked.offer));
  } else if (asked.environment != nullptr && *asked.environment != '\0') {
    per_node(rate, asked);
    rate.per_hour = environment_price(asked.environment) * asked.nodes;
    rate.source = price_variable;
  } else if (auto const offers = table.offers_of(asked.model); offers.size() == 1) {
    apply_offer(rate, asked, *offers.front());
  } else if (!asked.prices.empty()) {
    rate.warning = "CostMeter: " + asked.prices.string() + " has " + std::to_string(offers.size()) +
                   " offers for " + (asked.model.empty() ? "this device" : asked.model) +
                   ", so the price is not known; name one in CostMeter::offer";
  }
  if (rate.per_hour) *rate.per_hour += asked.other_per_hour;
  return rate;
}

}  // namespace frugal::detail
