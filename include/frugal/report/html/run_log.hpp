// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/base/file.hpp>
#include <frugal/error.hpp>
#include <frugal/inline.hpp>
#include <frugal/report/html/log_line.hpp>
#include <frugal/report/html/series.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace frugal::html {

/// A line of a log that is no line of Log.
struct LogFault {
  std::uint64_t line = 0;  ///< from 1
  std::string why;
};

/// What a page shows of a log (docs/report/log.md), in bounded memory whatever its length.
struct RunLog {
  std::vector<std::pair<std::string, Series>> series;  ///< "loss", "epoch/loss", "validation/loss"
  std::vector<LogLine> events;   ///< the first ones: neither steps, epochs nor validations
  std::vector<LogFault> faults;  ///< the first ones
  std::uint64_t lines = 0;
  std::uint64_t read = 0;  ///< lines of Log
  std::uint64_t damaged = 0;
  std::uint64_t events_left_out = 0;
  std::uint64_t series_left_out = 0;  ///< values of names beyond the first `most_series`
  std::uint64_t starts = 0;           ///< runs in the file; the page shows the last one
  bool cut_off = false;               ///< the last line has no end
  double steps = 0, epochs = 0, samples = 0, seconds = 0;  ///< at the end
  std::vector<LogLine> latest{};  ///< the last event of each name that still holds
  std::size_t resumes = 0;        ///< of this run
  double seconds_lost = 0;        ///< that they repeated

  /// A series with at least one number; null if there is none.
  FRUGAL_INLINE Series const* find(std::string_view name) const {
    auto const found = at(name);
    return found == series.end() || found->second.empty() ? nullptr : &found->second;
  }
  /// Whether it was logged, be it as NaN from the first value to the last.
  bool has(std::string_view name) const { return at(name) != series.end(); }
  /// The last event of that name that still holds, however many events there are. The cost and the
  /// end of a fit no longer hold once the run has gone on.
  FRUGAL_INLINE LogLine const* event(std::string_view name) const {
    auto const found = std::find_if(latest.begin(), latest.end(),
                                    [&](LogLine const& each) { return each.event == name; });
    return found == latest.end() ? nullptr : &*found;
  }

 private:
  FRUGAL_INLINE std::vector<std::pair<std::string, Series>>::const_iterator at(
      std::string_view name) const {
    return std::find_if(series.begin(), series.end(),
                        [&](auto const& each) { return each.first == name; });
  }
};

/// Reads a log piece by piece. A damaged line is counted and passed over.
class RunLogReader {
 public:
  static constexpr std::size_t most_series = 64;
  static constexpr std::size_t most_events = 1000;
  static constexpr std::size_t most_faults = 20;
  static constexpr std::size_t longest_line = std::size_t{1} << 20;

  FRUGAL_INLINE void feed(std::string_view bytes) {
    while (!bytes.empty()) {
      std::size_t const end = std::min(bytes.find('\n'), bytes.size());
      if (line_.size() + end > longest_line) {
        too_long_ = true;
        line_.clear();
      } else if (!too_long_) {
        line_ += bytes.substr(0, end);
      }
      begun_ = true;
      if (end == bytes.size()) return;
      bytes.remove_prefix(end + 1);
      take_line();
    }
  }

  FRUGAL_INLINE RunLog finish() {
    if (begun_) {
      std::uint64_t const before = log_.damaged;
      take_line();
      // A whole line may lack its end in a log that was edited by hand.
      log_.cut_off = log_.damaged != before;
    }
    return std::move(log_);
  }

 private:
  FRUGAL_INLINE void take_line() {
    ++log_.lines;
    std::string why;
    std::optional<LogLine> line;
    if (too_long_) {
      why = "it is longer than 1 MiB";
    } else {
      line = parse_log_line(line_, why);
    }
    bool const blank = line_.find_first_not_of(" \t\r") == line_.npos && !too_long_;
    line_.clear();
    too_long_ = begun_ = false;
    if (line) {
      ++log_.read;
      return take(*std::move(line));
    }
    if (blank) return;
    ++log_.damaged;
    if (log_.faults.size() < most_faults) log_.faults.push_back({log_.lines, std::move(why)});
  }

  FRUGAL_INLINE void take(LogLine line) {
    if (line.event == "begin") begin_again();
    std::optional<double> const dollars = line.number("dollars");
    if (dollars && std::isfinite(*dollars)) dollars_ = *dollars;
    log_.steps = std::max(log_.steps, line.step);
    log_.seconds = std::max(log_.seconds, line.seconds);
    if (auto const epoch = line.number("epoch")) log_.epochs = std::max(log_.epochs, *epoch);
    if (auto const samples = line.number("samples")) {
      log_.samples = std::max(log_.samples, *samples);
    }
    bool const epoch = line.event == "epoch", validation = line.event == "validation";
    if (line.event != "step" && !epoch && !validation) return take_event(std::move(line));
    std::erase_if(log_.latest, [&](LogLine const& each) {
      bool const ends = each.event == "end" || each.event == "cost" || each.event == "preempted";
      return ends && each.step < line.step;
    });
    for (LogLine::Field const& field : line.fields) {
      if (!field.is_number() || field.name == "epoch" || field.name == "samples") continue;
      std::string name = validation ? "validation/" + field.name : field.name;
      if (epoch && name == "loss") name = "epoch/loss";
      if (Series* const series = series_of(name)) {
        series->add({line.step, line.seconds, dollars_, field.number});
      }
    }
  }

  FRUGAL_INLINE void take_event(LogLine line) {
    if (line.event == "resume") {
      ++log_.resumes;
      double const lost = line.number("seconds_lost").value_or(0);
      if (lost > 0) log_.seconds_lost += lost;
      std::erase_if(log_.latest, [](LogLine const& each) { return each.event == "preempted"; });
    }
    auto const same = std::find_if(log_.latest.begin(), log_.latest.end(),
                                   [&](LogLine const& each) { return each.event == line.event; });
    if (same != log_.latest.end()) {
      *same = line;
    } else if (log_.latest.size() < most_series) {
      log_.latest.push_back(line);
    }
    if (log_.events.size() < most_events) {
      log_.events.push_back(std::move(line));
    } else {
      ++log_.events_left_out;
    }
  }

  /// Without Checkpoint a second start appends: its steps count from 0 again.
  FRUGAL_INLINE void begin_again() {
    ++log_.starts;
    if (log_.starts == 1) return;
    log_.series.clear();
    log_.events.clear();
    log_.latest.clear();
    log_.resumes = 0;
    log_.seconds_lost = 0;
    log_.events_left_out = log_.series_left_out = 0;
    log_.steps = log_.epochs = log_.samples = log_.seconds = 0;
    dollars_ = std::numeric_limits<double>::quiet_NaN();
  }

  FRUGAL_INLINE Series* series_of(std::string const& name) {
    for (auto& [known, series] : log_.series) {
      if (known == name) return &series;
    }
    if (log_.series.size() == most_series) {
      ++log_.series_left_out;
      return nullptr;
    }
    return &log_.series.emplace_back(name, Series{}).second;
  }

  RunLog log_;
  std::string line_;
  bool too_long_ = false;
  bool begun_ = false;  ///< there are bytes of a line, or one that was too long
  double dollars_ = std::numeric_limits<double>::quiet_NaN();  ///< so far
};

/// Reads the log of a run. DataError if it is missing, no regular file, or has no line of Log.
FRUGAL_INLINE RunLog read_run_log(std::filesystem::path const& path) {
  auto const refuse = [&](std::string what, std::string why, std::string fix) {
    return DataError({.what = std::move(what),
                      .where = path.string(),
                      .why = std::move(why),
                      .fix = std::move(fix)});
  };
  constexpr char const* fix =
      "Add Log<> to the recipe, and give the folder that Settings::run_dir names.";
  std::error_code failure;
  if (!std::filesystem::is_regular_file(path, failure)) {
    bool const there = std::filesystem::exists(path, failure);
    throw refuse("this folder has no log of a run",
                 there ? "it is no regular file" : "there is no such file", fix);
  }
  RunLogReader reader;
  File file = File::open(path);
  std::vector<std::byte> bytes(std::size_t{1} << 18);
  while (std::size_t const got = file.read(bytes)) {
    reader.feed({reinterpret_cast<char const*>(bytes.data()), got});
  }
  RunLog log = reader.finish();
  if (log.read == 0) {
    throw refuse("the log has no line of a run",
                 log.lines == 0     ? "it is empty"
                 : log.damaged == 0 ? "it has only blank lines"
                                    : "all of its " + std::to_string(log.damaged) +
                                          " lines are damaged; line 1: " + log.faults.front().why,
                 fix);
  }
  return log;
}

}  // namespace frugal::html
