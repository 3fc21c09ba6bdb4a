// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/base/whole_file.hpp>
#include <frugal/data/curate/curation_file.hpp>
#include <frugal/error.hpp>
#include <frugal/inline.hpp>
#include <frugal/report/html/levers.hpp>
#include <frugal/report/html/profile_windows.hpp>
#include <frugal/report/html/run_log.hpp>

#include <cmath>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace frugal::html {

/// Everything in a run's folder that a page shows. What is missing is left out; a damaged file is
/// named in `notes`.
struct RunFolder {
  std::filesystem::path path;
  std::string name;  ///< of the folder
  RunLog log;
  std::vector<ProfileWindow> windows{};  ///< of profile/hot_spots.json
  std::optional<Levers> levers{};
  std::optional<Curation> duplicates{};
  std::vector<std::string> notes{};
};

namespace parts {

/// Calls `use(text)` for a file that is there; what is wrong with it becomes a note.
template <class Use>
void read_extra(RunFolder& run, char const* name, Use&& use) {
  constexpr std::uintmax_t most = std::uintmax_t{256} << 20;
  std::filesystem::path const path = run.path / name;
  std::error_code failure;
  if (!std::filesystem::exists(path, failure)) return;
  std::string const left_out = std::string(name) + " is left out: ";
  if (!std::filesystem::is_regular_file(path, failure)) {
    run.notes.push_back(left_out + "it is no regular file.");
  } else if (std::filesystem::file_size(path, failure) > most || failure) {
    run.notes.push_back(left_out + "it is larger than 256 MiB.");
  } else {
    try {
      use(detail::read_whole_file(path));
    } catch (Error const& error) {
      run.notes.push_back(left_out + error.fault().what + ": " + error.fault().why + ".");
    }
  }
}

}  // namespace parts

/// Reads a run's folder. DataError without a log that can be read.
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
