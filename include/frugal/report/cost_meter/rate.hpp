// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/report/plan/money.hpp>
#include <frugal/report/plan/prices.hpp>

#include <array>
#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace frugal::detail {

/// The GPUs whose energy counts for a run, as NVML knows them; nothing: all of the machine.
/// `uuids` are those that CUDA shows to this process, in its order; without any (a build without
/// CUDA) CUDA_VISIBLE_DEVICES is read instead. `only`: the index of the one GPU that is billed, if
/// it is one: the others that are visible may run other jobs.
std::optional<std::vector<std::string>> metered_gpus(
    std::vector<std::array<unsigned char, 16>> const& uuids, char const* visible,
    std::optional<std::size_t> only);

}  // namespace frugal::detail

namespace frugal {

/// A price that a user gives: nothing, or per hour of a device, or per hour of a node.
using GivenPrice = std::variant<std::monostate, plan::PricePerDevice, plan::PricePerNode>;

namespace detail {

/// What a run costs per hour, and how that is known.
struct Rate {
  std::optional<double> per_hour{};  ///< of all devices or nodes together
  std::string per = "device";        ///< or "node"
  unsigned devices = 1;
  unsigned nodes = 1;
  bool knows_devices = true;       ///< a price per node alone does not say how many a node has
  std::string source = "unknown";  ///< of the price
  std::string warning{};           ///< what the user should know about it
};

/// The settings of CostMeter from which a rate follows.
struct RateQuestion {
  GivenPrice price{};
  unsigned devices = 1;
  unsigned nodes = 1;
  unsigned machines = 1;           ///< on which the run has processes
  std::filesystem::path prices{};  ///< a price file
  std::string offer{};             ///< the name of an offer
  bool spot = false;
  std::string currency = "USD";
  double other_per_hour = 0;
  std::string model{};                ///< of the device, as its driver names it
  char const* environment = nullptr;  ///< FRUGAL_PRICE_PER_HOUR
};

inline constexpr char const* price_variable = "FRUGAL_PRICE_PER_HOUR";

[[noreturn]] void refuse_price(std::string what, std::string where, std::string why,
                               std::string fix);

double checked_price(double price, std::string const& where);

/// The price in the environment: of one node, in money per hour.
double environment_price(std::string_view text);

/// A price per device knows no nodes.
void refuse_nodes(RateQuestion const& asked);

void apply_offer(Rate& rate, RateQuestion const& asked, plan::Offer const& offer);

void per_node(Rate& rate, RateQuestion const& asked);

/// The first that is known of: the price that was set, the offer that was named, the environment,
/// and the one offer that the price file has for this device. Never a price that the user did not
/// give.
Rate rate_of(RateQuestion const& asked);

}  // namespace detail
}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/report/cost_meter/rate.ipp>
#endif
