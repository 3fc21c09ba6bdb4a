// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/base/file.hpp>
#include <frugal/data/curate/curation.hpp>
#include <frugal/error.hpp>
#include <frugal/report/html/levers.hpp>
#include <frugal/report/html/run_log.hpp>
#include <frugal/report/html/series.hpp>

#include <cmath>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

namespace frugal::html {

/// One operation that took time.
struct HotSpot {
  std::string name;
  double share = 0;         ///< of the window; above 1 where threads or streams overlap
  double microseconds = 0;  ///< NaN if unknown
  std::uint64_t calls = 0;
};

/// One profiled window, as the policy Profile writes it to profile/hot_spots.json.
struct ProfileWindow {
  double step = 0, seconds = 0, step_seconds = 0, overhead_seconds = 0;
  std::optional<double> device_idle{};  ///< 0 to 1
  std::string bound, advice, trace;
  std::vector<HotSpot> hot_spots{};
  std::uint64_t damaged = 0;  ///< hot spots without a name or a share, which are left out
  Series memory;              ///< bytes over the window's seconds
};

/// Reads {"version":1,"windows":[...]}. A damaged hot spot is counted and left out. DataError with
/// the byte offset for anything else.
std::vector<ProfileWindow> parse_windows(std::string const& text, std::string const& where);

/// Everything in a run directory that a page shows. What is missing is left out; a damaged file is
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

/// Reads a run directory. DataError without a log that can be read.
RunFolder read_run_folder(std::filesystem::path const& path);

}  // namespace frugal::html

#ifndef FRUGAL_COMPILED
#include <frugal/report/html/run_folder.ipp>
#endif
