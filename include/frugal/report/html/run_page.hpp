// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/base/file.hpp>
#include <frugal/base/html_page.hpp>
#include <frugal/report/html/run_folder.hpp>

#include <filesystem>
#include <string>
#include <vector>

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
