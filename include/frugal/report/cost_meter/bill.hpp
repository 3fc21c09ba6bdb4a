// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/base/number_text.hpp>
#include <frugal/report/plan/amount_text.hpp>

#include <cstdint>
#include <optional>
#include <ostream>
#include <string>

namespace frugal {

/// What a run has cost, over all its processes.
struct Cost {
  std::string currency = "USD";
  double hours = 0;                        ///< billed: training, interruptions, CostMeter::idle
  std::optional<double> amount{};          ///< in the currency; nothing if the price is unknown
  std::optional<double> per_hour{};        ///< the price now, of all devices
  std::optional<double> kilowatt_hours{};  ///< nothing if no counter could be read
  std::optional<double> kg_co2{};          ///< nothing without a grid factor
  double lost_seconds = 0;                 ///< work that interruptions have undone
  std::optional<double> lost_amount{};     ///< what that work had cost
  std::uint64_t resumes = 0;

  friend std::ostream& operator<<(std::ostream& out, Cost const& cost) {
    auto const number = [](double value) { return detail::general(value, 6); };
    auto const money = [&](double value) {
      return ", " + plan::amount_text(value) + ' ' + cost.currency;
    };
    out << number(cost.hours) << " h";
    if (cost.amount) out << money(*cost.amount);
    if (cost.kilowatt_hours) out << ", " << number(*cost.kilowatt_hours) << " kWh";
    if (cost.kg_co2) out << ", " << number(*cost.kg_co2) << " kg CO2";
    if (cost.resumes == 0) return out;
    out << "; " << std::to_string(cost.resumes) << " resumes, " << number(cost.lost_seconds)
        << " s lost";
    if (cost.lost_amount) out << money(*cost.lost_amount);
    return out;
  }
};

namespace detail {

/// The sums of a bill. Every process adds its time at its own price.
struct Bill {
  double seconds = 0;           ///< billed, lost work included
  double unpriced_seconds = 0;  ///< of these, without a price
  double amount = 0;
  double joules = 0;
  double lost_seconds = 0;
  double lost_amount = 0;
  double lost_unpriced_seconds = 0;  ///< of the lost ones, without a price
  double per_hour = -1;              ///< of the last process; below 0: unknown
  std::uint64_t resumes = 0;

  /// Time that is billed at a price, if that is known. Returns what it costs.
  double add(double more_seconds, std::optional<double> at);

  /// The price of the last process, if it is known.
  std::optional<double> price() const {
    return per_hour < 0 ? std::nullopt : std::optional(per_hour);
  }

  /// Work that was paid for and is gone with the process that made it, at that one's price. It is
  /// not in the bill yet.
  void lose(double more_seconds) { mark_lost(more_seconds, add(more_seconds, price())); }

  /// Marks a part of what is in the bill as lost.
  void mark_lost(double more_seconds, double cost);

  /// Time without a price gets this one. Returns that time.
  double price_the_rest(double at);

  template <class Archive>
  void persist(Archive& archive) {
    archive("seconds", seconds);
    archive("unpriced_seconds", unpriced_seconds);
    archive("amount", amount);
    archive("joules", joules);
    archive("lost_seconds", lost_seconds);
    archive("lost_amount", lost_amount);
    archive("lost_unpriced_seconds", lost_unpriced_seconds);
    archive("per_hour", per_hour);
    archive("resumes", resumes);
  }
};

/// `metered`: whether energy is counted. `grid`: kg of CO2 per kilowatt-hour.
Cost cost_of(Bill const& bill, bool metered, std::optional<double> grid);

}  // namespace detail
}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/report/cost_meter/bill.ipp>
#endif
