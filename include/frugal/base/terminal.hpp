// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <string_view>

/// What is known of the terminal behind a file.
namespace frugal::watch {

struct TerminalSize {
  std::size_t columns = 80;
  std::size_t rows = 24;
};

/// Asked for at each redraw, so that no handler of SIGWINCH is needed; 80 by 24 if unknown.
TerminalSize terminal_size(std::FILE* file);

namespace detail {

/// Whether TERM names a terminal that moves its cursor.
inline bool moves_cursor(char const* term) {
  return term != nullptr && *term != '\0' && std::string_view(term) != "dumb";
}

/// Whether a switch such as CI is set; "0" and "false" are off.
bool switched_on(char const* value);

}  // namespace detail

/// Whether a file is a terminal on which lines can be redrawn. `term`, `ci` and `notebook` are the variables
/// TERM, CI and JPY_PARENT_PID: some CI agents run their jobs on a terminal, and their logs keep each
/// redraw. Jupyter gives `!program` in a cell a terminal named xterm-color, and the cell does not move its
/// cursor; its kernels have JPY_PARENT_PID, and its terminals do not.
bool redraws(std::FILE* file, char const* term = std::getenv("TERM"),
             char const* ci = std::getenv("CI"),
             char const* notebook = std::getenv("JPY_PARENT_PID"));

/// Whether such a terminal gets colors: TERM is set and NO_COLOR is not (no-color.org).
bool wants_colors(char const* term = std::getenv("TERM"),
                  char const* no_color = std::getenv("NO_COLOR"));

/// Writes a text and flushes it, so that a kill loses none of it. False with the reason in errno if
/// that fails. A pipe whose reader has gone (`program 2>&1 | head`) is EPIPE, without a SIGPIPE: a
/// closed terminal does not end a run.
bool write_text(std::FILE* out, std::string_view text);

}  // namespace frugal::watch

#ifndef FRUGAL_COMPILED
#include <frugal/base/terminal.ipp>
#endif
