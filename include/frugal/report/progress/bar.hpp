// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <frugal/base/number_texts.hpp>
#include <frugal/report/progress/display.hpp>

/// The texts of a progress display, without terminal or clock, so that they can be tested.
namespace frugal::watch {

/// How far something of known or unknown length is.
struct Share {
  std::uint64_t done = 0;
  std::optional<std::uint64_t> of{};

  std::optional<double> fraction() const;
};

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
  std::optional<double> last{};  ///< its value at the last validation
  std::optional<std::uint64_t> memory_bytes{};
  std::optional<double> data_wait{};  ///< fraction of the time that the run waited for data
  std::optional<Share> in_epoch{};    ///< steps of the epoch
  std::optional<Share> validation{};  ///< batches of the validation that is running
  std::vector<std::pair<std::string, double>> gauges{};  ///< dollars and the like, by name
  std::vector<std::pair<std::string, double>> more{};    ///< after the others, by name
};

namespace detail {

inline std::string percent_text(double fraction) {
  return short_number(std::round(1000 * fraction) / 10) + "%";
}

/// Speed and loss: what changes from step to step.
std::vector<std::string> step_figures(BarLine const& line);

void add_metric(std::vector<std::string>& texts, BarLine const& line);

void add_more(std::vector<std::string>& texts, BarLine const& line);

void add_resources(std::vector<std::string>& texts, BarLine const& line);

/// All figures, for one line.
std::vector<std::string> figures(BarLine const& line);

std::string head(BarLine const& line);

/// A head, a bar if the length is known, and the figures that fit, the first ones first. Takes
/// less than `columns`: some terminals wrap when the last one is written.
DisplayLine bar_line(std::string const& head, Share const& share,
                     std::vector<std::string> const& figures, std::size_t columns);

/// The heads at one width, so that the bars begin in one column.
std::string padded(std::string text, std::size_t columns);

}  // namespace detail

/// The lines of a terminal of `columns`: the run; the epoch; the validation, while one runs. None
/// reaches the last column.
std::vector<DisplayLine> bar_lines(BarLine const& line, std::size_t columns);

/// One line for a file or a pipe.
std::string line_text(BarLine const& line);

}  // namespace frugal::watch

namespace frugal::watch::detail {

/// The figures of the gauges: those with a known unit as one writes them, others by name.
std::vector<std::string> gauge_texts(std::vector<std::pair<std::string, double>> const& gauges);

}  // namespace frugal::watch::detail

#ifndef FRUGAL_COMPILED
#include <frugal/report/progress/bar.ipp>
#endif
