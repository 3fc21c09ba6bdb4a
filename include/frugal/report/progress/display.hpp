// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdio>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include <frugal/base/terminal.hpp>

namespace frugal::watch {

/// A line of a display: text, and how much of it is coloured. Only the text counts columns.
struct DisplayLine {
  std::string text;
  std::size_t colour_begin = 0;  ///< bytes [begin, end) of the text are green
  std::size_t colour_end = 0;
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
  Display(std::FILE* out, bool colours) : out_(out), colours_(colours) { link(true); }
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

  static std::string text_of(std::vector<DisplayLine> const& lines, TerminalSize size,
                             bool colours);

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
  bool colours_;
  bool drawn_ = false;
  std::vector<DisplayLine> lines_;
};

/// Prints a text above the bars of Progress, if some are drawn on that terminal, and plainly
/// otherwise. `std::cout` works too; one line at a time stays whole.
inline void print(std::string_view text, std::FILE* out = stderr) { Display::print(text, out); }

}  // namespace frugal::watch

#ifndef FRUGAL_COMPILED
#include <frugal/report/progress/display.ipp>
#endif
