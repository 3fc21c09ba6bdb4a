// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <ostream>
#include <string>

namespace frugal {

namespace detail {

/// Cents from 1 on, and six digits below: a short run costs less than a cent.
inline std::string amount_text(double amount) {
  std::array<char, 340> text{};
  std::snprintf(text.data(), text.size(), std::abs(amount) < 1 ? "%.6g" : "%.2f", amount);
  return text.data();
}

}  // namespace detail

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
    out << cost.hours << " h";
    if (cost.amount) out << ", " << detail::amount_text(*cost.amount) << ' ' << cost.currency;
    if (cost.kilowatt_hours) out << ", " << *cost.kilowatt_hours << " kWh";
    if (cost.kg_co2) out << ", " << *cost.kg_co2 << " kg CO2";
    if (cost.resumes == 0) return out;
    out << "; " << cost.resumes << " resumes, " << cost.lost_seconds << " s lost";
    if (cost.lost_amount) {
      out << ", " << detail::amount_text(*cost.lost_amount) << ' ' << cost.currency;
    }
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
  double per_hour = -1;  ///< of the last process; below 0: unknown
  std::uint64_t resumes = 0;

  /// Time that is billed at a price, if that is known. Returns what it costs.
  double add(double more_seconds, std::optional<double> at) {
    seconds += more_seconds;
    if (!at) unpriced_seconds += more_seconds;
    double const costs = more_seconds / 3600 * at.value_or(0);
    amount += costs;
    return costs;
  }

  /// Work that was paid for and is gone with the process that made it, at that one's price.
  void lose(double more_seconds) {
    lost_amount += add(more_seconds, per_hour < 0 ? std::nullopt : std::optional(per_hour));
    lost_seconds += more_seconds;
  }

  /// Time without a price gets this one. Returns that time.
  double price_the_rest(double at) {
    double const rest = unpriced_seconds;
    amount += rest / 3600 * at;
    unpriced_seconds = 0;
    return rest;
  }

  template <class Archive>
  void persist(Archive& archive) {
    archive("seconds", seconds);
    archive("unpriced_seconds", unpriced_seconds);
    archive("amount", amount);
    archive("joules", joules);
    archive("lost_seconds", lost_seconds);
    archive("lost_amount", lost_amount);
    archive("per_hour", per_hour);
    archive("resumes", resumes);
  }
};

}  // namespace detail
}  // namespace frugal
