// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/report/plan/money.hpp>
#include <frugal/report/plan/require.hpp>

namespace frugal::plan {

/// Cost of training = price per hour x hours per run x runs. Every lever lowers one of the three.
struct RunCost {
  PricePerDevice price{};
  double devices = 1;
  double hours = 0;  ///< of a run, on all devices at once
  double runs = 1;

  constexpr Usd per_hour() const { return price * DeviceHours(devices); }
  constexpr DeviceHours per_run_hours() const { return DeviceHours(devices * hours); }
  constexpr Usd per_run() const { return price * per_run_hours(); }
  constexpr Usd total() const { return per_run() * runs; }

  /// Throws SettingsError for what is negative or not finite.
  constexpr RunCost const& checked() const {
    detail::require_not_negative("price", price.value());
    detail::require_positive("devices", devices);
    detail::require_not_negative("hours", hours);
    detail::require_not_negative("runs", runs);
    return *this;
  }

  /// The price that a published cost of one run implies: compare it with a price list.
  static constexpr RunCost from_total(Usd one_run, double devices, double hours, double runs = 1) {
    detail::require_not_negative("cost of a run", one_run.value());
    detail::require_positive("devices", devices);
    detail::require_positive("hours", hours);
    return RunCost{.price = PricePerDevice(one_run.value() / (devices * hours)),
                   .devices = devices,
                   .hours = hours,
                   .runs = runs}
        .checked();
  }
};

}  // namespace frugal::plan
