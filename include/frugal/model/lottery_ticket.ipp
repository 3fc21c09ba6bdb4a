// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/model/lottery_ticket.hpp>

#include <frugal/inline.hpp>

#include <iomanip>
#include <locale>
#include <sstream>

namespace frugal {

FRUGAL_INLINE std::ostream& operator<<(std::ostream& out, Tickets const& all) {
  std::ostringstream text;
  text.imbue(std::locale::classic());
  text << "round  sparsity";
  if (!all.rounds.empty()) {
    for (auto const& [name, value] : all.rounds.front().metrics) text << "  " << name;
  }
  for (Ticket const& each : all.rounds) {
    text << '\n' << std::setw(5) << each.round << std::fixed << std::setprecision(4);
    text << std::setw(10) << each.sparsity;
    for (auto const& [name, value] : each.metrics) {
      text << "  " << std::setw(static_cast<int>(name.size())) << value;
    }
  }
  if (all.interrupted) text << "\ninterrupted";
  return out << text.str();
}

}  // namespace frugal

namespace frugal::detail {

FRUGAL_INLINE void require_fraction_of_round(double fraction) {
  if (fraction > 0 && fraction < 1) return;
  throw SettingsError({.what = "LotteryTicket has a fraction of " + std::to_string(fraction),
                       .where = "LotteryTicket::fraction",
                       .why = "it is the share of the remaining weights that a round prunes",
                       .fix = "Give a number between 0 and 1, such as 0.2."});
}

}  // namespace frugal::detail
