// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/report/progress/display.hpp>

#include <frugal/base/text_width.hpp>
#include <frugal/inline.hpp>

#include <unistd.h>

#include <algorithm>
#include <utility>

namespace frugal::watch {

FRUGAL_INLINE void Display::draw(std::vector<DisplayLine> lines) {
  std::lock_guard const lock(mutex());
  lines_ = std::move(lines);
  redraw();
}

FRUGAL_INLINE void Display::end() {
  std::lock_guard const lock(mutex());
  if (!drawn_) return;
  put("\r\x1b[J" + text_of(lines_, terminal_size(out_), colours_));
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
  text += text_of(shown, size, colours_);
  // Not below the last line: its newline would scroll a full screen.
  if (!shown.empty()) text.pop_back();
  std::size_t const up = shown.empty() ? (gap ? 1 : 0) : shown.size() - 1 + (gap ? 1 : 0);
  if (up > 0) text += "\x1b[" + std::to_string(up) + "A";
  text += "\r";
  put(text);
  drawn_ = true;
}

FRUGAL_INLINE std::string Display::text_of(std::vector<DisplayLine> const& lines, TerminalSize size,
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

}  // namespace frugal::watch
