// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/report/html/run_cost.hpp>

#include <frugal/inline.hpp>

#include <string>

namespace frugal::html {

FRUGAL_INLINE std::optional<double> dollars_per_second(RunLog const& log) {
  LogLine const* const price = log.event("price");
  std::string const currency = price == nullptr ? "" : price->text("currency");
  if (!currency.empty() && currency != "USD") return std::nullopt;
  auto const hour = price == nullptr ? std::nullopt : price->number("per_hour");
  if (!hour || !(*hour > 0)) return std::nullopt;
  return *hour / 3600;
}

FRUGAL_INLINE std::optional<double> dollars_of(RunLog const& log) {
  if (LogLine const* const cost = log.event("cost")) {
    if (auto const dollars = cost->number("dollars"); dollars && std::isfinite(*dollars))
      return dollars;
  }
  Series const* const gauge = log.find("dollars");
  if (gauge != nullptr) return gauge->last().value;
  return std::nullopt;
}

FRUGAL_INLINE double paid_seconds(RunLog const& log) {
  LogLine const* const cost = log.event("cost");
  auto const hours = cost == nullptr ? std::nullopt : cost->number("hours");
  return hours && std::isfinite(*hours) ? 3600 * *hours : log.seconds;
}

FRUGAL_INLINE Lost lost_by(RunLog const& log) {
  Lost lost{.times = log.resumes, .seconds = log.seconds_lost};
  LogLine const* const cost = log.event("cost");
  if (cost != nullptr) lost.dollars = cost->number("lost_dollars");
  auto const rate = dollars_per_second(log);
  if (!lost.dollars && rate) lost.dollars = *rate * lost.seconds;
  return lost;
}

}  // namespace frugal::html
