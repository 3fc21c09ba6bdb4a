// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/report/cost_meter/bill.hpp>

#include <frugal/inline.hpp>

namespace frugal::detail {

FRUGAL_INLINE double Bill::add(double more_seconds, std::optional<double> at) {
  seconds += more_seconds;
  if (!at) unpriced_seconds += more_seconds;
  double const costs = more_seconds / 3600 * at.value_or(0);
  amount += costs;
  return costs;
}

FRUGAL_INLINE void Bill::mark_lost(double more_seconds, double cost) {
  lost_seconds += more_seconds;
  lost_amount += cost;
  if (!price()) lost_unpriced_seconds += more_seconds;
}

FRUGAL_INLINE double Bill::price_the_rest(double at) {
  double const rest = unpriced_seconds;
  amount += rest / 3600 * at;
  lost_amount += lost_unpriced_seconds / 3600 * at;
  unpriced_seconds = lost_unpriced_seconds = 0;
  return rest;
}

FRUGAL_INLINE Cost cost_of(Bill const& bill, bool metered, std::optional<double> grid) {
  Cost cost{.hours = bill.seconds / 3600,
            .per_hour = bill.price(),
            .lost_seconds = bill.lost_seconds,
            .resumes = bill.resumes};
  if (bill.unpriced_seconds == 0 && bill.price()) {
    cost.amount = bill.amount;
    cost.lost_amount = bill.lost_amount;
  }
  if (bill.joules > 0 || metered) {
    cost.kilowatt_hours = bill.joules / 3.6e6;
    if (grid) cost.kg_co2 = *cost.kilowatt_hours * *grid;
  }
  return cost;
}

}  // namespace frugal::detail
