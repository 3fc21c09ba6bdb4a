// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <frugal/base/file.hpp>
#include <frugal/base/html_page.hpp>
#include <frugal/report/html/chart.hpp>
#include <frugal/report/html/run_folder.hpp>
#include <frugal/report/html/run_log.hpp>
#include <frugal/report/html/series.hpp>

namespace frugal::html {

/// What a chart shows of each run, and how.
struct Curve {
  enum class Height : unsigned char { fitted, from_zero, may_be_logarithmic };

  std::string title;
  Unit unit = Unit::plain;
  Height height = Height::fitted;
  /// Name in the log, name in the chart.
  std::vector<std::pair<std::string, std::string>> series{};
  std::string note{};
};

std::string capitalised(std::string text);

/// The curves of a log in the order of a page: loss, metrics, learning rate, speed, memory, money,
/// energy, and everything else that was logged.
std::vector<Curve> curves_of(std::vector<RunFolder> const& runs);

/// The section of all curves: one line per series for one run, one per run for several, of which
/// each chart then shows the series that compares best (validation before training).
void write_curves(Page& page, std::vector<RunFolder> const& runs);

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

namespace frugal {

namespace html {

/// The page of a run.
std::string run_page(RunFolder const& run);

/// What is wrong with the files of a run, or of several.
void write_notes(Page& page, std::vector<std::string> const& notes);

}  // namespace html

/// The report on one run, as one HTML page that needs no other file and no network.
///
/// Errors  DataError for a folder without a log that can be read. Damaged lines and files are named
///         on the page.
std::string run_report_html(std::filesystem::path const& folder);

/// Writes the report, replacing a file of that name at once. StoreError if that fails.
inline void write_run_report(std::filesystem::path const& file,
                             std::filesystem::path const& folder) {
  detail::write_whole_file(file, run_report_html(folder), detail::Durable::yes);
}

}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/report/html/run_page.ipp>
#endif
