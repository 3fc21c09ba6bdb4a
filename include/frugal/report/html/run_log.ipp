// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/report/html/run_log.hpp>

#include <frugal/base/file.hpp>
#include <frugal/error.hpp>
#include <frugal/inline.hpp>

#include <charconv>
#include <cmath>
#include <cstdint>
#include <optional>
#include <span>
#include <system_error>

namespace frugal::html {

FRUGAL_INLINE LogLine::Field const* LogLine::find(std::string_view name) const {
  for (Field const& field : fields) {
    if (field.name == name) return &field;
  }
  return nullptr;
}

FRUGAL_INLINE std::optional<double> LogLine::number(std::string_view name) const {
  Field const* const field = find(name);
  return field != nullptr && field->is_number() ? std::optional(field->number) : std::nullopt;
}

FRUGAL_INLINE std::string LogLine::text(std::string_view name) const {
  Field const* const field = find(name);
  return field != nullptr && field->text ? *field->text : std::string();
}

FRUGAL_INLINE bool LogLineHandler::RawNumber(char const*, unsigned size, bool) {
  std::string_view const text = stream_.last(size);
  LogLine::Field field;
  // A number that no double holds stays NaN, and is drawn as little.
  double number = 0;
  if (std::from_chars(text.data(), text.data() + text.size(), number).ec == std::errc()) {
    field.number = number;
    if (number >= 0x1p53 && text.find_first_not_of("0123456789") == text.npos) {
      field.digits = text;
    }
  }
  return add(std::move(field));
}

FRUGAL_INLINE bool LogLineHandler::String(char const* text, unsigned size, bool) {
  if (!detail::is_json_text({text, size})) return false;
  LogLine::Field field;
  field.text.emplace(text, std::min<std::size_t>(size, longest_text));
  return add(std::move(field));
}

FRUGAL_INLINE bool LogLineHandler::Key(char const* text, unsigned size, bool) {
  name_.assign(text, std::min<std::size_t>(size, longest_text));
  return detail::is_json_text({text, size});
}

FRUGAL_INLINE bool LogLineHandler::add(LogLine::Field field) {
  if (!open_) return false;  // a value that is no object
  // A policy's event may have fields of these names as well: the first ones are Log's.
  if (name_ == "event" && field.text && line.event.empty()) {
    line.event = *std::move(field.text);
  } else if (name_ == "step" && field.number >= 0 && !has_step) {
    line.step = field.number;
    has_step = true;
  } else if (name_ == "seconds" && field.number >= 0 && !has_seconds) {
    line.seconds = field.number;
    has_seconds = true;
  } else if (line.fields.size() < most_fields) {
    field.name = name_;
    line.fields.push_back(std::move(field));
  }
  return true;
}

FRUGAL_INLINE std::optional<LogLine> parse_log_line(std::string& text, std::string& why) {
  detail::JsonStream stream(text.data(), text.size());
  LogLineHandler handler(stream);
  auto const fault = detail::parse_json(stream, handler);
  if (fault) {
    why = "it is no flat JSON object, at byte " + std::to_string(fault->at) + ": " + fault->why;
  } else if (handler.line.event.empty()) {
    why = "it has no \"event\"";
  } else if (!handler.has_step || !handler.has_seconds) {
    why = handler.has_step ? "it has no \"seconds\"" : "it has no \"step\"";
  } else {
    return std::move(handler.line);
  }
  return std::nullopt;
}

FRUGAL_INLINE Series const* RunLog::find(std::string_view name) const {
  auto const found = at(name);
  return found == series.end() || found->second.empty() ? nullptr : &found->second;
}

FRUGAL_INLINE LogLine const* RunLog::event(std::string_view name) const {
  auto const found = std::find_if(latest.begin(), latest.end(),
                                  [&](LogLine const& each) { return each.event == name; });
  return found == latest.end() ? nullptr : &*found;
}

FRUGAL_INLINE std::vector<std::pair<std::string, Series>>::const_iterator RunLog::at(
    std::string_view name) const {
  return std::find_if(series.begin(), series.end(),
                      [&](auto const& each) { return each.first == name; });
}

FRUGAL_INLINE void RunLogReader::feed(std::string_view bytes) {
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

FRUGAL_INLINE RunLog RunLogReader::finish() {
  if (begun_) {
    std::uint64_t const before = log_.damaged;
    take_line();
    // A whole line may lack its end in a log that was edited by hand.
    log_.cut_off = log_.damaged != before;
  }
  return std::move(log_);
}

FRUGAL_INLINE void RunLogReader::take_line() {
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

FRUGAL_INLINE void RunLogReader::take(LogLine line) {
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

FRUGAL_INLINE void RunLogReader::take_event(LogLine line) {
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

FRUGAL_INLINE void RunLogReader::begin_again() {
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

FRUGAL_INLINE Series* RunLogReader::series_of(std::string const& name) {
  for (auto& [known, series] : log_.series) {
    if (known == name) return &series;
  }
  if (log_.series.size() == most_series) {
    ++log_.series_left_out;
    return nullptr;
  }
  return &log_.series.emplace_back(name, Series{}).second;
}

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

FRUGAL_INLINE std::optional<double> dollars_per_second(RunLog const& log) {
  LogLine const* const price = log.event("price");
  std::string const currency = price == nullptr ? "" : price->text("currency");
  if (!currency.empty() && currency != "USD") return std::nullopt;
  auto const hour = price == nullptr ? std::nullopt : price->number("per_hour");
  if (!hour || !(*hour > 0)) return std::nullopt;
  return *hour / 3600;
}

FRUGAL_INLINE std::optional<double> dollars_of(RunLog const& log) {
  if (LogLine const* const cost = log.event("cost")) {
    if (auto const dollars = cost->number("dollars"); dollars && std::isfinite(*dollars))
      return dollars;
  }
  Series const* const gauge = log.find("dollars");
  if (gauge != nullptr) return gauge->last().value;
  return std::nullopt;
}

FRUGAL_INLINE double paid_seconds(RunLog const& log) {
  LogLine const* const cost = log.event("cost");
  auto const hours = cost == nullptr ? std::nullopt : cost->number("hours");
  return hours && std::isfinite(*hours) ? 3600 * *hours : log.seconds;
}

FRUGAL_INLINE Lost lost_by(RunLog const& log) {
  Lost lost{.times = log.resumes, .seconds = log.seconds_lost};
  LogLine const* const cost = log.event("cost");
  if (cost != nullptr) lost.dollars = cost->number("lost_dollars");
  auto const rate = dollars_per_second(log);
  if (!lost.dollars && rate) lost.dollars = *rate * lost.seconds;
  return lost;
}

}  // namespace frugal::html
