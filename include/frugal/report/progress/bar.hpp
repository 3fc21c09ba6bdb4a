// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/base/number_texts.hpp>
#include <frugal/base/terminal.hpp>
#include <frugal/policy/step_pace.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace frugal::detail {

/// The pace of a run from one redraw to the next: samples per second, time left, and the share of
/// the time in which the run waited for data.
class Pace {
 public:
  using clock = std::chrono::steady_clock;

  void begin(clock::time_point now) { begin_ = last_ = now; }

  /// Whether the first steps are known, from which the rest is counted.
  bool knows_first() const { return first_step_.has_value(); }
  void first(std::uint64_t step, std::uint64_t sample);
  std::uint64_t steps_since_first(std::uint64_t step) const {
    return first_step_ && step > *first_step_ ? step - *first_step_ : 0;
  }

  /// `waited` is seconds that the run has waited for data so far, if that is measured.
  void update(clock::time_point now, std::uint64_t step, std::uint64_t sample,
              std::optional<double> waited);

  double samples_per_second() const { return rate_; }
  std::optional<double> data_wait() const { return data_wait_; }
  std::optional<double> seconds_left(std::uint64_t step,
                                     std::optional<std::uint64_t> total_steps) const {
    return steps_.seconds_left(total_steps, step);
  }
  double seconds_since_begin(clock::time_point now) const {
    return std::chrono::duration<double>(now - begin_).count();
  }

 private:
  clock::time_point begin_{}, last_{};
  std::optional<std::uint64_t> first_step_;  ///< the step before the first of this fit
  std::uint64_t last_sample_ = 0;
  double rate_ = 0;
  StepPace steps_;
  std::optional<double> waited_;
  std::optional<double> data_wait_;
};

}  // namespace frugal::detail

namespace frugal::watch {

/// A line of a display: text, and how much of it is colored. Only the text counts columns.
struct DisplayLine {
  std::string text;
  std::size_t color_begin = 0;  ///< bytes [begin, end) of the text are green
  std::size_t color_end = 0;
};

/// Some lines at the end of a terminal, redrawn in place.
///
/// After a redraw the cursor rests at the beginning of an empty line above them. So
///   - a redraw erases from the cursor to the end of the screen. It does not count the rows that it
///     drew, which change when a terminal that was made narrower wraps them;
///   - a line that the program prints in between takes the empty line, and stays.
/// No line reaches the last column, and there are never more lines than the screen has rows below
/// the empty one. The cursor is never hidden, so that no exception and no signal leaves it so.
class Display {
 public:
  Display(std::FILE* out, bool colors) : out_(out), colors_(colors) { link(true); }
  Display(Display const&) = delete;
  Display& operator=(Display const&) = delete;
  ~Display() {
    end();
    link(false);
  }

  /// Draws these lines instead of those before.
  void draw(std::vector<DisplayLine> lines);

  /// Leaves the lines on the screen, with the cursor below them; for what comes after a run, or an
  /// error. Nothing if nothing is drawn.
  void end();

  /// Writes a text, with a newline if it has none at its end, above the lines of every display that
  /// draws on `out`'s terminal. To anything else it is just written. Any thread may call it.
  static void print(std::string_view text, std::FILE* out);

 private:
  void redraw();

  static std::string text_of(std::vector<DisplayLine> const& lines, TerminalSize size, bool colors);

  // One write: what another thread prints does not come between.
  void put(std::string const& text) { write_text(out_, text); }

  static std::mutex& mutex() {
    static std::mutex one;
    return one;
  }
  static std::vector<Display*>& displays() {
    static std::vector<Display*> all;
    return all;
  }
  /// The displays drawn on the terminal of `out`: the same file, or another that is a terminal.
  static std::vector<Display*> on(std::FILE* out);
  void link(bool here);

  std::FILE* out_;
  bool colors_;
  bool drawn_ = false;
  std::vector<DisplayLine> lines_;
};

/// Prints a text above the bars of Progress, if some are drawn on that terminal, and plainly
/// otherwise. `std::cout` works too; one line at a time stays whole.
inline void print(std::string_view text, std::FILE* out = stderr) { Display::print(text, out); }

}  // namespace frugal::watch

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
