// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include <frugal/inline.hpp>

/// What is known of the terminal behind a file.
namespace frugal::watch {

struct TerminalSize {
  std::size_t columns = 80;
  std::size_t rows = 24;
};

/// Asked for at each redraw, so that no handler of SIGWINCH is needed; 80 by 24 if unknown.
FRUGAL_INLINE TerminalSize terminal_size(std::FILE* file) {
  TerminalSize size;
  winsize told{};
  if (::ioctl(::fileno(file), TIOCGWINSZ, &told) != 0) return size;
  if (told.ws_col > 0) size.columns = told.ws_col;
  if (told.ws_row > 0) size.rows = told.ws_row;
  return size;
}

namespace detail {

/// Whether TERM names a terminal that moves its cursor.
inline bool moves_cursor(char const* term) {
  return term != nullptr && *term != '\0' && std::string_view(term) != "dumb";
}

/// Whether a switch such as CI is set; "0" and "false" are off.
FRUGAL_INLINE bool switched_on(char const* value) {
  std::string_view const text = value == nullptr ? "" : value;
  return !text.empty() && text != "0" && text != "false";
}

}  // namespace detail

/// Whether a file is a terminal on which lines can be redrawn. `term` and `ci` are the variables
/// TERM and CI: some CI agents run their jobs on a terminal, and their logs keep each redraw.
FRUGAL_INLINE bool redraws(std::FILE* file, char const* term = std::getenv("TERM"),
                           char const* ci = std::getenv("CI")) {
  if (file == nullptr || ::isatty(::fileno(file)) != 1) return false;
  return detail::moves_cursor(term) && !detail::switched_on(ci);
}

/// Whether such a terminal gets colours: TERM is set and NO_COLOR is not (no-color.org).
FRUGAL_INLINE bool wants_colours(char const* term = std::getenv("TERM"),
                                 char const* no_colour = std::getenv("NO_COLOR")) {
  if (no_colour != nullptr && *no_colour != '\0') return false;
  return detail::moves_cursor(term);
}

}  // namespace frugal::watch
