// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/report/html/run_log.hpp>
#include <frugal/report/html/series.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace frugal::html {

/// Which values of a metric are better.
enum class Better : unsigned char { unknown, lower, higher };

namespace parts {

/// The words of a name, in lower case and without the number at their end: "Top5_acc" is "top" and
/// "acc".
std::vector<std::string> words_of(std::string_view name);

}  // namespace parts

/// By the metric's name, in the field's terms; unknown for other names. "top1_error" is an error.
Better better_by_name(std::string_view metric);

/// By the recipe of the log, where a policy watches the metric: Watch<"cider", Better::higher>.
/// Otherwise by the name. `metric` is that of the program, without "validation/".
Better better_of(RunLog const& log, std::string_view metric);

/// A value that a page names, and its name: "best" where the direction is known, else "last".
struct NamedPoint {
  char const* name;
  Point point;
};
NamedPoint best_of(Better better, Series const& series);

}  // namespace frugal::html

#ifndef FRUGAL_COMPILED
#include <frugal/report/html/best_value.ipp>
#endif
