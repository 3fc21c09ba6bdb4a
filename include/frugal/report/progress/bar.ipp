// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/report/progress/bar.hpp>

#include <frugal/base/number_text.hpp>
#include <frugal/base/text_width.hpp>
#include <frugal/inline.hpp>

#include <unistd.h>

#include <iterator>

namespace frugal::detail {

FRUGAL_INLINE void Pace::first(std::uint64_t step, std::uint64_t sample) {
  first_step_ = step;
  last_sample_ = sample;
}

FRUGAL_INLINE void Pace::update(clock::time_point now, std::uint64_t step, std::uint64_t sample,
                                std::optional<double> waited) {
  double const seconds = std::chrono::duration<double>(now - last_).count();
  if (seconds > 0 && sample > last_sample_) {
    double const rate = static_cast<double>(sample - last_sample_) / seconds;
    // An exponential mean keeps the rate readable and follows a change in a few redraws.
    rate_ = rate_ == 0 ? rate : 0.7 * rate_ + 0.3 * rate;
  }
  steps_.step(step, seconds_since_begin(now));
  if (waited && waited_ && seconds > 0) {
    data_wait_ = std::clamp((*waited - *waited_) / seconds, 0.0, 1.0);
  }
  waited_ = waited;
  last_ = now;
  last_sample_ = sample;
}

}  // namespace frugal::detail

namespace frugal::watch {

FRUGAL_INLINE void Display::draw(std::vector<DisplayLine> lines) {
  std::lock_guard const lock(mutex());
  lines_ = std::move(lines);
  redraw();
}

FRUGAL_INLINE void Display::end() {
  std::lock_guard const lock(mutex());
  if (!drawn_) return;
  put("\r\x1b[J" + text_of(lines_, terminal_size(out_), colors_));
  drawn_ = false;
}

FRUGAL_INLINE void Display::print(std::string_view text, std::FILE* out) {
  std::lock_guard const lock(mutex());
  std::vector<Display*> const mine = on(out);
  std::string whole = mine.empty() ? "" : "\r\x1b[J";
  whole += text;
  if (text.empty() || text.back() != '\n') whole += '\n';
  // Before the lines, which may go to the same terminal by another file.
  write_text(out, whole);
  for (Display* each : mine) each->redraw();
}

FRUGAL_INLINE void Display::redraw() {
  TerminalSize const size = terminal_size(out_);
  bool const gap = size.rows > 1;
  std::vector<DisplayLine> shown = lines_;
  shown.resize(std::min(shown.size(), gap ? size.rows - 1 : 1));
  std::string text = "\r\x1b[J";
  if (gap) text += "\n";
  text += text_of(shown, size, colors_);
  // Not below the last line: its newline would scroll a full screen.
  if (!shown.empty()) text.pop_back();
  std::size_t const up = shown.empty() ? (gap ? 1 : 0) : shown.size() - 1 + (gap ? 1 : 0);
  if (up > 0) text += "\x1b[" + std::to_string(up) + "A";
  text += "\r";
  put(text);
  drawn_ = true;
}

FRUGAL_INLINE std::string Display::text_of(std::vector<DisplayLine> const& lines, TerminalSize size,
                                           bool colors) {
  std::string all;
  for (DisplayLine const& line : lines) {
    std::string_view const seen = truncated(line.text, size.columns > 1 ? size.columns - 1 : 1);
    std::size_t const end = std::min(line.color_end, seen.size());
    if (colors && line.color_begin < end) {
      all += seen.substr(0, line.color_begin);
      all += "\x1b[32m";
      all += seen.substr(line.color_begin, end - line.color_begin);
      all += "\x1b[0m";
      all += seen.substr(end);
    } else {
      all += seen;
    }
    all += '\n';
  }
  return all;
}

FRUGAL_INLINE std::vector<Display*> Display::on(std::FILE* out) {
  std::vector<Display*> mine;
  for (Display* each : displays()) {
    bool const same = each->out_ == out || ::isatty(::fileno(out)) == 1;
    if (each->drawn_ && same) mine.push_back(each);
  }
  return mine;
}

FRUGAL_INLINE void Display::link(bool here) {
  std::lock_guard const lock(mutex());
  if (here) {
    displays().push_back(this);
  } else {
    std::erase(displays(), this);
  }
}

FRUGAL_INLINE std::optional<double> Share::fraction() const {
  if (!of || *of == 0) return {};
  return std::min(1.0, static_cast<double>(done) / static_cast<double>(*of));
}

}  // namespace frugal::watch

namespace frugal::watch::detail {

FRUGAL_INLINE std::vector<std::string> step_figures(BarLine const& line) {
  std::vector<std::string> texts{rate_text(line.samples_per_second) + " samples/s"};
  if (line.utilisation) texts.push_back(short_number(100 * *line.utilisation) + "% of peak");
  if (line.seconds_left) texts.push_back(duration_text(*line.seconds_left) + " left");
  texts.push_back((line.mean ? "mean loss " : "loss ") + short_number(line.loss));
  return texts;
}

FRUGAL_INLINE void add_metric(std::vector<std::string>& texts, BarLine const& line) {
  if (line.best) {
    texts.push_back("best " + printable(line.metric) + " " + short_number(*line.best));
  }
  if (line.last) texts.push_back("last " + short_number(*line.last));
}

FRUGAL_INLINE void add_more(std::vector<std::string>& texts, BarLine const& line) {
  for (auto const& [name, value] : line.more) {
    texts.push_back(printable(name) + " " + short_number(value));
  }
}

FRUGAL_INLINE void add_resources(std::vector<std::string>& texts, BarLine const& line) {
  if (line.data_wait) texts.push_back("data wait " + percent_text(*line.data_wait));
  if (line.memory_bytes) {
    texts.push_back(frugal::detail::bytes_text(static_cast<double>(*line.memory_bytes)));
  }
}

FRUGAL_INLINE std::vector<std::string> figures(BarLine const& line) {
  std::vector<std::string> texts = step_figures(line);
  add_metric(texts, line);
  add_more(texts, line);
  add_resources(texts, line);
  for (std::string& text : gauge_texts(line.gauges)) texts.push_back(std::move(text));
  return texts;
}

FRUGAL_INLINE std::string head(BarLine const& line) {
  if (!line.epochs) return "epoch " + std::to_string(line.epoch + 1);
  return "epoch " + std::to_string(std::min(line.epoch + 1, *line.epochs)) + "/" +
         std::to_string(*line.epochs);
}

FRUGAL_INLINE DisplayLine bar_line(std::string const& head, Share const& share,
                                   std::vector<std::string> const& figures, std::size_t columns) {
  constexpr std::size_t widest = 30;
  constexpr std::size_t narrowest = 5;
  std::size_t const room = columns > 0 ? columns - 1 : 0;
  std::string tail;
  auto const fraction = share.fraction();
  if (fraction) {
    char percent[8];
    std::snprintf(percent, sizeof percent, "%3.0f%%", 100 * *fraction);
    tail = std::string(" ") + percent;
  }
  std::size_t used = text_width(head) + text_width(tail);
  for (std::string const& figure : figures) {
    std::size_t const width = text_width(figure) + 2;
    if (used + width > room) break;
    tail += "  " + figure;
    used += width;
  }
  DisplayLine line{.text = head};
  // A space and two brackets.
  if (fraction && room >= used + narrowest + 3) {
    std::size_t const width = std::min(room - used - 3, widest);
    auto const done = static_cast<std::size_t>(*fraction * static_cast<double>(width));
    line.text += " [";
    line.color_begin = line.text.size();
    line.text += std::string(done, '#');
    line.color_end = line.text.size();
    line.text += std::string(width - done, '.') + "]";
  }
  line.text += tail;
  line.text.resize(truncated(line.text, room).size());
  return line;
}

FRUGAL_INLINE std::string padded(std::string text, std::size_t columns) {
  std::size_t const width = text_width(text);
  if (width < columns) text.append(columns - width, ' ');
  return text;
}

}  // namespace frugal::watch::detail

namespace frugal::watch {

FRUGAL_INLINE std::vector<DisplayLine> bar_lines(BarLine const& line, std::size_t columns) {
  std::string const run = detail::head(line);
  bool const validates = line.validation.has_value();
  std::size_t const head = std::max<std::size_t>(text_width(run), validates ? 10 : 5);
  Share const whole{line.step, line.total_steps};
  std::vector<std::string> about_run;
  if (!whole.fraction()) about_run.push_back("step " + std::to_string(line.step));
  if (line.seconds_left) about_run.push_back(duration_text(*line.seconds_left) + " left");
  detail::add_metric(about_run, line);
  for (std::string& text : detail::gauge_texts(line.gauges)) about_run.push_back(std::move(text));
  if (line.memory_bytes) {
    about_run.push_back(frugal::detail::bytes_text(static_cast<double>(*line.memory_bytes)));
  }
  std::vector<DisplayLine> lines{
      detail::bar_line(detail::padded(run, head), whole, about_run, columns)};

  BarLine now = line;
  now.seconds_left.reset();
  now.memory_bytes.reset();
  std::vector<std::string> about_step = detail::step_figures(now);
  Share const part = line.in_epoch.value_or(Share{});
  if (part.of) {
    about_step.insert(about_step.begin(),
                      "step " + std::to_string(part.done) + "/" + std::to_string(*part.of));
  }
  detail::add_more(about_step, now);
  detail::add_resources(about_step, now);
  lines.push_back(detail::bar_line(detail::padded("steps", head), part, about_step, columns));

  if (validates) {
    Share const& batches = *line.validation;
    std::string text = "batch " + std::to_string(batches.done);
    if (batches.of) text += "/" + std::to_string(*batches.of);
    lines.push_back(detail::bar_line(detail::padded("validation", head), batches, {text}, columns));
  }
  return lines;
}

FRUGAL_INLINE std::string line_text(BarLine const& line) {
  std::string text = detail::head(line) + "  step " + std::to_string(line.step);
  if (line.total_steps) text += "/" + std::to_string(*line.total_steps);
  for (std::string const& each : detail::figures(line)) text += "  " + each;
  return text;
}

}  // namespace frugal::watch

namespace frugal::watch::detail {

FRUGAL_INLINE std::vector<std::string> gauge_texts(
    std::vector<std::pair<std::string, double>> const& gauges) {
  auto const value_of = [&](std::string_view name) -> std::optional<double> {
    for (auto const& [each, value] : gauges) {
      if (each == name && std::isfinite(value)) return value;
    }
    return {};
  };
  std::vector<std::string> texts;
  auto const spent = [&](char const* name, auto&& text) {
    auto const now = value_of(name);
    auto const all = value_of(std::string(name) + "_projected");
    if (now && all) texts.push_back(text(*now) + " of " + text(*all));
    if (now && !all) texts.push_back(text(*now));
    if (!now && all) texts.push_back(text(*all) + " projected");
  };
  auto const dollars = [](double value) {
    return "$" + frugal::detail::fixed_small(value, std::abs(value) < 0.995 ? 3 : 2);
  };
  spent("dollars", dollars);
  // Hours are what is known if the price is not.
  if (!value_of("dollars")) {
    spent("hours", [](double value) { return short_number(value) + " h"; });
  }
  for (auto const& [name, value] : gauges) {
    static constexpr std::string_view shown[] = {"dollars",
                                                 "dollars_projected",
                                                 "hours",
                                                 "hours_projected",
                                                 "kilowatt_hours_projected",
                                                 "memory_bytes",
                                                 "device_memory_bytes"};
    if (std::find(std::begin(shown), std::end(shown), name) != std::end(shown)) continue;
    if (name == "device_idle") {
      texts.push_back("idle " + short_number(100 * value) + "%");
    } else if (name == "kilowatt_hours") {
      spent("kilowatt_hours", [](double energy) { return short_number(energy) + " kWh"; });
    } else if (name == "kg_co2") {
      texts.push_back(short_number(value) + " kg CO2");
    } else {
      texts.push_back(printable(name) + " " + short_number(value));
    }
  }
  return texts;
}

}  // namespace frugal::watch::detail
