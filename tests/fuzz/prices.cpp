// SPDX-License-Identifier: Apache-2.0
// libFuzzer: any bytes are either refused as a price file with a SettingsError that has line and
// column, or give a table whose devices and prices can be used. Everything else ends the program.
#include <frugal/report/plan/prices.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>

#include "demand.hpp"

using frugal_fuzz::demand;

namespace {

bool is_price(frugal::plan::Price const& price) {
  double const value = price.per_device().value();
  return std::isfinite(value) && value >= 0 && price.devices_of_node() >= 1;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  std::string_view const text(reinterpret_cast<char const*>(data), size);
  try {
    frugal::plan::PriceTable const table = frugal::plan::parse_prices(text, "fuzz");
    for (frugal::plan::Device const& device : table.devices().devices()) {
      demand(table.devices().find(device.name) != nullptr, "a device is found by its name");
      for (auto const& [format, peak] : device.peaks) demand(peak > 0, "a peak is above 0");
    }
    for (frugal::plan::Offer const& offer : table.offers()) {
      demand(table.devices().find(offer.device) != nullptr, "an offer is for a known device");
      demand(is_price(offer.on_demand), "a price is a number of 0 or more");
      demand(!offer.spot || is_price(*offer.spot), "a spot price is a number of 0 or more");
      demand(!offer.example, "a user's price is no example");
    }
  } catch (frugal::SettingsError const& error) {
    std::string const& where = error.fault().where;
    unsigned line = 0, column = 0;
    demand(std::sscanf(where.c_str(), "fuzz:%u:%u", &line, &column) == 2 && line > 0 && column > 0,
           "a wrong file is refused with line and column");
    demand(column <= size + 1, "the column is in the file");
    demand(!error.fault().why.empty(), "a wrong file is refused with why");
  }
  return 0;
}
