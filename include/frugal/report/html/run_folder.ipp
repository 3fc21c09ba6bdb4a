// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/report/html/run_folder.hpp>

#include <frugal/inline.hpp>

#include <string_view>
#include <utility>

namespace frugal::html {

FRUGAL_INLINE RunFolder read_run_folder(std::filesystem::path const& path) {
  std::error_code failure;
  if (!std::filesystem::is_directory(path, failure)) {
    throw DataError({.what = "there is no run to report on",
                     .where = path.string(),
                     .why = std::filesystem::exists(path, failure) ? "it is no folder"
                                                                   : "there is no such folder",
                     .fix = "Give the folder that Settings::run_dir names."});
  }
  RunFolder run{.path = path, .name = {}, .log = read_run_log(path / "metrics.jsonl")};
  std::filesystem::path const whole = std::filesystem::absolute(path, failure).lexically_normal();
  run.name =
      whole.has_filename() ? whole.filename().string() : whole.parent_path().filename().string();
  parts::read_extra(run, "profile/hot_spots.json", [&](std::string const& text) {
    run.windows = parse_windows(text, "profile/hot_spots.json");
    std::uint64_t damaged = 0;
    for (ProfileWindow const& window : run.windows) damaged += window.damaged;
    if (damaged == 0) return;
    run.notes.push_back("profile/hot_spots.json has " + std::to_string(damaged) +
                        (damaged == 1 ? " hot spot" : " hot spots") +
                        " without a name or a share, which the page leaves out.");
  });
  parts::read_extra(run, "levers.json", [&](std::string const& text) {
    run.levers = parse_levers(text, "levers.json");
  });
  parts::read_extra(run, "duplicates.jsonl", [&](std::string const& text) {
    run.duplicates = parse_curation(text, "duplicates.jsonl");
  });
  RunLog const& log = run.log;
  if (log.damaged != 0) {
    std::string note = "metrics.jsonl has " + std::to_string(log.damaged) +
                       (log.damaged == 1 ? " damaged line" : " damaged lines") +
                       ", which the page leaves out:";
    for (LogFault const& fault : log.faults) {
      note += " line " + std::to_string(fault.line) + ", " + fault.why + ";";
    }
    note.back() = '.';
    if (log.faults.size() < log.damaged) note += " Only the first ones are named.";
    run.notes.push_back(std::move(note));
  }
  if (log.cut_off) {
    run.notes.push_back(
        "The last line of metrics.jsonl is cut off: a process was killed while it "
        "wrote, or the file was copied from a run in progress.");
  }
  if (log.starts > 1) {
    run.notes.push_back("metrics.jsonl has " + std::to_string(log.starts) +
                        " runs, one after the other. The page shows the last one.");
  }
  if (log.series_left_out != 0) {
    run.notes.push_back("The log has more than 64 named values; the page shows the first 64.");
  }
  if (log.events_left_out != 0) {
    run.notes.push_back("The log has " + std::to_string(log.events_left_out) +
                        " more events than the 1000 that the page knows.");
  }
  return run;
}

}  // namespace frugal::html
