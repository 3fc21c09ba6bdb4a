// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/base/html_page.hpp>

#include <optional>
#include <string>
#include <vector>

namespace frugal::html {

/// What a run costs with one more lever each time.
struct Levers {
  struct Step {
    std::string name;
    double value = 0;  ///< the total with this lever and those before it
    std::optional<double> hours{};
    std::string note{};
  };

  std::string title;
  std::string unit = "USD";  ///< a currency, or what else the values are: "hours"
  std::vector<Step> steps{};
};

/// Reads levers.json, version 1. DataError with the byte offset for a text that is none.
Levers parse_levers(std::string const& text, std::string const& where);

/// "$12.00", "12.00 EUR", "3 h".
std::string amount_text(double value, std::string const& unit);

namespace parts {

std::string share_text(double part, double of);

/// " (+50%)", of the difference from a plan; empty for a plan of nothing.
std::string change_text(double planned, double actual);

}  // namespace parts

/// The waterfall: the first total, what each lever takes off it or adds, and what remains. Texts
/// carry all numbers; the bars only draw them.
void write_waterfall(Page& page, Levers const& levers);

/// The same, in a section of its title.
void write_waterfall_section(Page& page, Levers const& levers);

}  // namespace frugal::html

#ifndef FRUGAL_COMPILED
#include <frugal/report/html/levers.ipp>
#endif
