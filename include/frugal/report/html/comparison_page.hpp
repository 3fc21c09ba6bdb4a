// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/base/file.hpp>
#include <frugal/error.hpp>
#include <frugal/report/html/levers.hpp>
#include <frugal/report/html/run_folder.hpp>
#include <frugal/report/html/run_page.hpp>

#include <filesystem>
#include <string>
#include <vector>

namespace frugal {

/// The report on several runs: a table, their curves in the same charts, and what changed from each
/// run to the next, in the order given.
///
/// Errors  SettingsError without a folder; DataError for one without a log that can be read.
std::string comparison_report_html(std::vector<std::filesystem::path> const& folders);

/// Writes the report, replacing a file of that name at once. StoreError if that fails.
inline void write_comparison_report(std::filesystem::path const& file,
                                    std::vector<std::filesystem::path> const& folders) {
  detail::write_whole_file(file, comparison_report_html(folders), detail::Durable::yes);
}

}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/report/html/comparison_page.ipp>
#endif
