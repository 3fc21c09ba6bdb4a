// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/report/html/run_folder.hpp>

#include <frugal/base/json.hpp>
#include <frugal/base/utf8.hpp>
#include <frugal/error.hpp>
#include <frugal/inline.hpp>

#include <cstddef>
#include <limits>
#include <string_view>
#include <utility>

namespace frugal::html {

FRUGAL_INLINE std::vector<ProfileWindow> parse_windows(std::string const& text,
                                                       std::string const& where) {
  using detail::Json;
  constexpr std::size_t most_windows = 1000, most_spots = 50;
  auto const refuse = [&](std::string why) {
    return DataError({.what = "the hot spots cannot be read",
                      .where = where,
                      .why = std::move(why),
                      .fix = "Remove the file, or profile again."});
  };
  detail::JsonError error;
  auto const all = Json::parse(text, &error);
  if (!all) throw refuse("at byte " + std::to_string(error.at) + ": " + error.why);
  Json const* const written = all->find("version");
  if (written == nullptr || written->as_unsigned() != std::uint64_t{1}) {
    throw refuse("its \"version\" is not 1");
  }
  auto const items = [&](Json const& parent, char const* name) -> std::vector<Json> const& {
    Json const* const found = parent.find(name);
    if (found == nullptr || !found->is(Json::Kind::array)) {
      throw refuse("\"" + std::string(name) + "\" is no array, at byte " +
                   std::to_string(parent.at()));
    }
    return found->items();
  };
  auto const number = [](Json const& parent, char const* name) {
    Json const* const found = parent.find(name);
    auto const value = found == nullptr ? std::nullopt : found->as_double();
    return value.value_or(std::numeric_limits<double>::quiet_NaN());
  };
  auto const text_of = [](Json const& parent, char const* name) {
    Json const* const found = parent.find(name);
    return found != nullptr && found->is(Json::Kind::text) ? detail::beginning(found->text(), 500)
                                                           : std::string();
  };
  std::vector<ProfileWindow> windows;
  for (Json const& each : items(*all, "windows")) {
    if (windows.size() == most_windows) windows.erase(windows.begin());
    ProfileWindow window{.step = number(each, "step"),
                         .seconds = number(each, "seconds"),
                         .step_seconds = number(each, "step_seconds"),
                         .overhead_seconds = number(each, "overhead_seconds"),
                         .bound = text_of(each, "bound"),
                         .advice = text_of(each, "advice"),
                         .trace = text_of(each, "trace"),
                         .memory = {}};
    double const idle = number(each, "device_idle");
    if (idle >= 0 && idle <= 1) window.device_idle = idle;
    for (Json const& spot : items(each, "hot_spots")) {
      HotSpot found{.name = text_of(spot, "name"),
                    .share = number(spot, "share"),
                    .microseconds = number(spot, "microseconds")};
      if (found.name.empty() || !(found.share >= 0)) {
        ++window.damaged;
        continue;
      }
      if (Json const* const calls = spot.find("calls")) {
        found.calls = calls->as_unsigned().value_or(0);
      }
      if (window.hot_spots.size() < most_spots) window.hot_spots.push_back(std::move(found));
    }
    if (each.find("memory") != nullptr) {
      for (Json const& point : items(each, "memory")) {
        double const at = number(point, "seconds");
        if (at >= 0) {
          window.memory.add({.step = window.step, .seconds = at, .value = number(point, "bytes")});
        }
      }
    }
    windows.push_back(std::move(window));
  }
  return windows;
}

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
