// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/base/file.hpp>
#include <frugal/report/html/page.hpp>
#include <frugal/report/html/run_folder.hpp>

#include <cmath>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

namespace frugal {

namespace html {

inline std::string with_share(std::string const& value, std::string const& share) {
  return value + " <small>" + share + "</small>";
}

std::vector<std::pair<std::string, std::string>> headline(RunFolder const& run);

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

namespace frugal::html {

/// What was planned, and what happened.
void write_plan(Page& page, RunLog const& log);

void write_interruptions(Page& page, RunLog const& log);

void write_profile(Page& page, RunFolder const& run);

void write_duplicates(Page& page, RunFolder const& run);

/// All events but those that have a section, with what they say.
void write_events(Page& page, RunLog const& log);

/// What the run is: from its "begin", "recipe" and "price" lines.
void write_facts(Page& page, RunFolder const& run);

}  // namespace frugal::html

#ifndef FRUGAL_COMPILED
#include <frugal/report/html/run_page.ipp>
#endif
