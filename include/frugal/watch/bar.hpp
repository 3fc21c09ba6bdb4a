// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <utility>
#include <vector>

/// The texts of a progress display, without terminal or clock, so that they can be tested.
namespace frugal::watch {

/// The contents of one redraw.
struct BarLine {
  std::uint64_t epoch = 0;                ///< completed epochs before the current one
  std::optional<std::uint64_t> epochs{};  ///< epochs of the run, if limited
  std::uint64_t step = 0;
  std::optional<std::uint64_t> total_steps{};
  double samples_per_second = 0;
  std::optional<double> utilisation{};  ///< fraction of the device's peak
  std::optional<double> seconds_left{};
  double loss = 0;
  bool mean = false;             ///< whether the loss is the epoch's mean rather than the last one
  std::string metric{};          ///< name of the watched metric
  std::optional<double> best{};  ///< its best value so far
  std::vector<std::pair<std::string, double>> more{};  ///< behind all that, by name
};

/// Four significant digits: 0.7131, 12.4, 1.2e-05.
inline std::string short_number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.4g", value);
  return text;
}

/// A rate of constant width: 950, 12.3k, 4.56M.
inline std::string rate_text(double value) {
  char text[32];
  char const* unit = "";
  // 999.5 rounds to 1000, which %.3g prints as 1e+03.
  if (value >= 999.5e6) {
    value /= 1e9;
    unit = "G";
  } else if (value >= 999.5e3) {
    value /= 1e6;
    unit = "M";
  } else if (value >= 999.5) {
    value /= 1e3;
    unit = "k";
  }
  std::snprintf(text, sizeof text, "%.3g%s", value, unit);
  return text;
}

/// 42s, 3m07s, 2h05m, 3d04h.
inline std::string duration_text(double seconds) {
  if (!(seconds >= 0)) return "?";
  auto const whole = static_cast<unsigned long long>(std::llround(std::min(seconds, 1e12)));
  char text[40];
  if (whole < 60) {
    std::snprintf(text, sizeof text, "%llus", whole);
  } else if (whole < 3600) {
    std::snprintf(text, sizeof text, "%llum%02llus", whole / 60, whole % 60);
  } else if (whole < 86400) {
    std::snprintf(text, sizeof text, "%lluh%02llum", whole / 3600, whole % 3600 / 60);
  } else {
    std::snprintf(text, sizeof text, "%llud%02lluh", whole / 86400, whole % 86400 / 3600);
  }
  return text;
}

namespace detail {

inline std::string figures(BarLine const& line) {
  std::string text = rate_text(line.samples_per_second) + " samples/s";
  if (line.utilisation) text += "  " + short_number(100 * *line.utilisation) + "% of peak";
  if (line.seconds_left) text += "  " + duration_text(*line.seconds_left) + " left";
  text += (line.mean ? "  mean loss " : "  loss ") + short_number(line.loss);
  if (line.best) text += "  best " + line.metric + " " + short_number(*line.best);
  for (auto const& [name, value] : line.more) text += "  " + name + " " + short_number(value);
  return text;
}

inline std::string head(BarLine const& line) {
  if (!line.epochs) return "epoch " + std::to_string(line.epoch + 1);
  return "epoch " + std::to_string(std::min(line.epoch + 1, *line.epochs)) + "/" +
         std::to_string(*line.epochs);
}

}  // namespace detail

/// One line for a terminal of `columns`; never longer, so that it never wraps.
inline std::string bar_text(BarLine const& line, std::size_t columns) {
  std::string const head = detail::head(line);
  std::string const tail = detail::figures(line);
  std::string text;
  if (line.total_steps && *line.total_steps > 0) {
    double const share =
        std::min(1.0, static_cast<double>(line.step) / static_cast<double>(*line.total_steps));
    char percent[8];
    std::snprintf(percent, sizeof percent, "%3.0f%%", 100 * share);
    // Brackets, percentage, spaces and the last column, which stays free.
    std::size_t const fixed = head.size() + tail.size() + 11;
    std::size_t const width = columns > fixed + 5 ? std::min<std::size_t>(columns - fixed, 30) : 0;
    auto const done = static_cast<std::size_t>(share * static_cast<double>(width));
    std::string const bar =
        width == 0 ? "" : " [" + std::string(done, '#') + std::string(width - done, '.') + "]";
    text = head + bar + " " + percent + "  " + tail;
  } else {
    text = head + "  step " + std::to_string(line.step) + "  " + tail;
  }
  // The last column stays free: some terminals wrap when it is written.
  if (columns > 0 && text.size() >= columns) text.resize(columns - 1);
  return text;
}

/// One line for a file or a pipe.
inline std::string line_text(BarLine const& line) {
  std::string text = detail::head(line) + "  step " + std::to_string(line.step);
  if (line.total_steps) text += "/" + std::to_string(*line.total_steps);
  return text + "  " + detail::figures(line);
}

}  // namespace frugal::watch
