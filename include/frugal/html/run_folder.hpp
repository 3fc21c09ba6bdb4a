// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/data/curate/curation_file.hpp>
#include <frugal/error.hpp>
#include <frugal/html/levers.hpp>
#include <frugal/html/run_log.hpp>
#include <frugal/store/json.hpp>

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

/// One operation that took time, from profile/hot_spots.json.
struct HotSpot {
  std::string name;
  double share = 0;  ///< of the profiled time, 0 to 1
  std::optional<double> seconds{};
  std::optional<std::uint64_t> calls{};
};

/// Everything in a run's folder that a page shows. What is missing is left out; a damaged file is
/// named in `notes`.
struct RunFolder {
  std::filesystem::path path;
  std::string name;  ///< of the folder
  RunLog log;
  std::vector<HotSpot> hot_spots{};
  std::optional<Levers> levers{};
  std::optional<Curation> duplicates{};
  std::vector<std::string> notes{};
};

/// Reads profile/hot_spots.json: an array of objects with "name" and "share", or an object that has
/// one under "hot_spots". DataError for anything else.
inline std::vector<HotSpot> parse_hot_spots(std::string const& text, std::string const& where) {
  using detail::Json;
  auto const refuse = [&](std::string why) {
    return DataError({.what = "the hot spots cannot be read",
                      .where = where,
                      .why = std::move(why),
                      .fix = "Remove the file, or profile again."});
  };
  detail::JsonError error;
  auto const all = Json::parse(text, &error);
  if (!all) throw refuse("at byte " + std::to_string(error.at) + ": " + error.why);
  Json const* list = &*all;
  if (all->is(Json::Kind::object)) list = all->find("hot_spots");
  if (list == nullptr || !list->is(Json::Kind::array)) throw refuse("it has no \"hot_spots\"");
  std::vector<HotSpot> spots;
  for (Json const& each : list->items()) {
    Json const* const name = each.find("name");
    Json const* const share = each.find("share");
    auto const part = share == nullptr ? std::nullopt : share->as_double();
    if (name == nullptr || !name->is(Json::Kind::text) || !part || !(*part >= 0 && *part <= 1)) {
      throw refuse("a hot spot lacks a name, or a share from 0 to 1, at byte " +
                   std::to_string(each.at()));
    }
    HotSpot spot{.name = detail::beginning(name->text(), 200), .share = *part};
    if (Json const* const seconds = each.find("seconds")) spot.seconds = seconds->as_double();
    if (Json const* const calls = each.find("calls")) spot.calls = calls->as_unsigned();
    spots.push_back(std::move(spot));
    if (spots.size() == 50) break;
  }
  return spots;
}

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
inline RunFolder read_run_folder(std::filesystem::path const& path) {
  std::error_code failure;
  if (!std::filesystem::is_directory(path, failure)) {
    throw DataError({.what = "there is no run to report on",
                     .where = path.string(),
                     .why = std::filesystem::exists(path, failure) ? "it is no folder"
                                                                   : "there is no such folder",
                     .fix = "Give the folder that Settings::run names."});
  }
  RunFolder run{.path = path, .name = {}, .log = read_run_log(path / "metrics.jsonl")};
  std::filesystem::path const whole = std::filesystem::absolute(path, failure).lexically_normal();
  run.name =
      whole.has_filename() ? whole.filename().string() : whole.parent_path().filename().string();
  parts::read_extra(run, "profile/hot_spots.json", [&](std::string const& text) {
    run.hot_spots = parse_hot_spots(text, "profile/hot_spots.json");
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
