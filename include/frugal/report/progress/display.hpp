// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <frugal/base/terminal.hpp>
#include <frugal/base/text_width.hpp>
#include <frugal/base/write_text.hpp>
#include <frugal/inline.hpp>

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
  FRUGAL_INLINE void draw(std::vector<DisplayLine> lines) {
    std::lock_guard const lock(mutex());
    lines_ = std::move(lines);
    redraw();
  }

  /// Leaves the lines on the screen, with the cursor below them; for what comes after a run, or an
  /// error. Nothing if nothing is drawn.
  FRUGAL_INLINE void end() {
    std::lock_guard const lock(mutex());
    if (!drawn_) return;
    put("\r\x1b[J" + text_of(lines_, terminal_size(out_), colours_));
    drawn_ = false;
  }

  /// Writes a text, with a newline if it has none at its end, above the lines of every display that
  /// draws on `out`'s terminal. To anything else it is just written. Any thread may call it.
  FRUGAL_INLINE static void print(std::string_view text, std::FILE* out) {
    std::lock_guard const lock(mutex());
    std::vector<Display*> const mine = on(out);
    std::string whole = mine.empty() ? "" : "\r\x1b[J";
    whole += text;
    if (text.empty() || text.back() != '\n') whole += '\n';
    // Before the lines, which may go to the same terminal by another file.
    write_text(out, whole);
    for (Display* each : mine) each->redraw();
  }

 private:
  FRUGAL_INLINE void redraw() {
    TerminalSize const size = terminal_size(out_);
    bool const gap = size.rows > 1;
    std::vector<DisplayLine> shown = lines_;
    shown.resize(std::min(shown.size(), gap ? size.rows - 1 : 1));
    std::string text = "\r\x1b[J";
    if (gap) text += "\n";
    text += text_of(shown, size, colours_);
    // Not below the last line: its newline would scroll a full screen.
    if (!shown.empty()) text.pop_back();
    std::size_t const up = shown.empty() ? (gap ? 1 : 0) : shown.size() - 1 + (gap ? 1 : 0);
    if (up > 0) text += "\x1b[" + std::to_string(up) + "A";
    text += "\r";
    put(text);
    drawn_ = true;
  }

  FRUGAL_INLINE static std::string text_of(std::vector<DisplayLine> const& lines, TerminalSize size,
                                           bool colours) {
    std::string all;
    for (DisplayLine const& line : lines) {
      std::string_view const seen = truncated(line.text, size.columns > 1 ? size.columns - 1 : 1);
      std::size_t const end = std::min(line.colour_end, seen.size());
      if (colours && line.colour_begin < end) {
        all += seen.substr(0, line.colour_begin);
        all += "\x1b[32m";
        all += seen.substr(line.colour_begin, end - line.colour_begin);
        all += "\x1b[0m";
        all += seen.substr(end);
      } else {
        all += seen;
      }
      all += '\n';
    }
    return all;
  }

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
  FRUGAL_INLINE static std::vector<Display*> on(std::FILE* out) {
    std::vector<Display*> mine;
    for (Display* each : displays()) {
      bool const same = each->out_ == out || ::isatty(::fileno(out)) == 1;
      if (each->drawn_ && same) mine.push_back(each);
    }
    return mine;
  }
  FRUGAL_INLINE void link(bool here) {
    std::lock_guard const lock(mutex());
    if (here) {
      displays().push_back(this);
    } else {
      std::erase(displays(), this);
    }
  }

  std::FILE* out_;
  bool colours_;
  bool drawn_ = false;
  std::vector<DisplayLine> lines_;
};

/// Prints a text above the bars of Progress, if some are drawn on that terminal, and plainly
/// otherwise. `std::cout` works too; one line at a time stays whole.
inline void print(std::string_view text, std::FILE* out = stderr) { Display::print(text, out); }

}  // namespace frugal::watch
