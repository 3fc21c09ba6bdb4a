// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/base/json.hpp>
#include <frugal/report/html/series.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace frugal::html {

/// A line of a log: a flat object of numbers and strings.
struct LogLine {
  struct Field {
    std::string name;
    double number = std::numeric_limits<double>::quiet_NaN();  ///< NaN for null
    std::optional<std::string> text{};                         ///< of a string
    std::string digits{};  ///< of a whole number from 2^53 on, which a double may round

    bool is_number() const { return !text; }
  };

  std::string event;
  double step = 0;
  double seconds = 0;
  std::vector<Field> fields{};  ///< the others, in their order

  Field const* find(std::string_view name) const;
  std::optional<double> number(std::string_view name) const;
  std::string text(std::string_view name) const;
};

/// The handler that RapidJSON calls: it makes no tree, so that a log of a million lines is read in
/// seconds.
class LogLineHandler : public detail::NumbersAsWritten {
 public:
  static constexpr std::size_t most_fields = 256;
  static constexpr std::size_t longest_text = 4096;

  explicit LogLineHandler(detail::JsonStream const& stream) : stream_(stream) {}

  bool Null() { return add({.name = {}}); }
  bool Bool(bool truth) { return add({.name = {}, .number = truth ? 1.0 : 0.0}); }
  bool RawNumber(char const*, unsigned size, bool);
  bool String(char const* text, unsigned size, bool);
  bool Key(char const* text, unsigned size, bool);
  // Log writes no object within an object, and no array.
  bool StartObject() { return !std::exchange(open_, true); }
  bool StartArray() { return false; }
  bool EndObject(unsigned) { return true; }
  bool EndArray(unsigned) { return false; }

  LogLine line{};
  bool has_step = false, has_seconds = false;

 private:
  bool add(LogLine::Field field);

  detail::JsonStream const& stream_;
  std::string name_;
  bool open_ = false;
};

/// Nothing if the text is no line of Log; `why` then says so. The text is overwritten.
std::optional<LogLine> parse_log_line(std::string& text, std::string& why);

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
  Series const* find(std::string_view name) const;
  /// Whether it was logged, be it as NaN from the first value to the last.
  bool has(std::string_view name) const { return at(name) != series.end(); }
  /// The last event of that name that still holds, however many events there are. The cost and the
  /// end of a fit no longer hold once the run has gone on.
  LogLine const* event(std::string_view name) const;

 private:
  std::vector<std::pair<std::string, Series>>::const_iterator at(std::string_view name) const;
};

/// Reads a log piece by piece. A damaged line is counted and passed over.
class RunLogReader {
 public:
  static constexpr std::size_t most_series = 64;
  static constexpr std::size_t most_events = 1000;
  static constexpr std::size_t most_faults = 20;
  static constexpr std::size_t longest_line = std::size_t{1} << 20;

  void feed(std::string_view bytes);

  RunLog finish();

 private:
  void take_line();

  void take(LogLine line);

  void take_event(LogLine line);

  /// Without Checkpoint a second start appends: its steps count from 0 again.
  void begin_again();

  Series* series_of(std::string const& name);

  RunLog log_;
  std::string line_;
  bool too_long_ = false;
  bool begun_ = false;  ///< there are bytes of a line, or one that was too long
  double dollars_ = std::numeric_limits<double>::quiet_NaN();  ///< so far
};

/// Reads the log of a run. DataError if it is missing, no regular file, or has no line of Log.
RunLog read_run_log(std::filesystem::path const& path);

/// Dollars per second of training, if the run knows its price in dollars: that of all its devices.
std::optional<double> dollars_per_second(RunLog const& log);

/// The cost of the run: that of its last "cost" line, or else the last value of the gauge.
std::optional<double> dollars_of(RunLog const& log);

/// Seconds that the run took, with those that it repeated, if its log has them.
double paid_seconds(RunLog const& log);

/// Training that was repeated because a process had died.
struct Lost {
  std::size_t times = 0;
  double seconds = 0;
  std::optional<double> dollars{};
};
Lost lost_by(RunLog const& log);

}  // namespace frugal::html

#ifndef FRUGAL_COMPILED
#include <frugal/report/html/run_log.ipp>
#endif
