// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/core/run/durations.hpp>

#include <concepts>
#include <string>
#include <string_view>

// Limits of Budget and BurnRate as types; each is read from one gauge of CostMeter.
namespace frugal {

/// An option: N US dollars. The amount of money itself is plan::Usd.
template <int N>
struct Usd {
  static_assert(N >= 1,
                "frugal: Usd<0> is spent before it begins. Write Usd<1> or more; cents go "
                "into the member `limit`.");
  static constexpr int amount = N;
};

/// An option: N kilowatt-hours.
template <int N>
struct KilowattHours {
  static_assert(N >= 1,
                "frugal: KilowattHours<0> is spent before it begins. Write "
                "KilowattHours<1> or more.");
  static constexpr int amount = N;
};

/// Units of BurnRate.
struct PerHour {
  static constexpr double hours = 1;
  static constexpr std::string_view text = "an hour";
};
struct PerDay {
  static constexpr double hours = 24;
  static constexpr std::string_view text = "a day";
};

/// An option: ends the run, with a checkpoint, when the limit is reached.
struct Stop {};

namespace detail {

/// How a limit is measured. `known` is false for types that are none.
template <class Limit>
struct limit_traits {
  static constexpr bool known = false;
};
template <int N>
struct limit_traits<Usd<N>> {
  static constexpr bool known = true;
  static constexpr double amount = Usd<N>::amount;
  static constexpr std::string_view gauge = "dollars";
  static constexpr std::string_view projected = "dollars_projected";
  static constexpr std::string_view rate = "dollars_per_hour";
  static constexpr std::string_view unit = "USD";
  static constexpr std::string_view missing = "the price of this run is not known in US dollars";
  static constexpr std::string_view fix =
      "Set CostMeter::price or FRUGAL_PRICE_PER_HOUR, or limit Hours<N>.";
};
template <int N>
struct limit_traits<KilowattHours<N>> {
  static constexpr bool known = true;
  static constexpr double amount = KilowattHours<N>::amount;
  static constexpr std::string_view gauge = "kilowatt_hours";
  static constexpr std::string_view projected = "kilowatt_hours_projected";
  static constexpr std::string_view rate = "kilowatts";
  static constexpr std::string_view unit = "kWh";
  static constexpr std::string_view missing = "no counter of energy can be read here";
  static constexpr std::string_view fix =
      "Make the counters readable (docs/report/cost_meter.md), or limit Hours<N>.";
};
template <class Time>
  requires is_wall_time<Time>
struct limit_traits<Time> {
  static constexpr bool known = true;
  static constexpr double amount = Time::seconds / 3600;
  static constexpr std::string_view gauge = "hours";
  static constexpr std::string_view projected = "hours_projected";
  static constexpr std::string_view rate = "";
  static constexpr std::string_view unit = "h";
  static constexpr std::string_view missing = "CostMeter has not begun";
  static constexpr std::string_view fix = "";
};

namespace option {

struct limit {
  template <class O>
  static constexpr bool has = limit_traits<O>::known;
};
struct spent_limit {
  template <class O>
  static constexpr bool has = limit_traits<O>::known && !is_wall_time<O>;
};
struct per_time {
  template <class O>
  static constexpr bool has = requires {
    O::hours;
    O::text;
  };
};
struct stop {
  template <class O>
  static constexpr bool has = std::same_as<O, Stop>;
};

}  // namespace option

/// "16.5 USD", "20000 USD", "0.00002 USD": never with an exponent that a reader of a bill would
/// have to undo.
std::string amount_text(double amount, std::string_view unit);

}  // namespace detail
}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/report/budget/limit.ipp>
#endif
