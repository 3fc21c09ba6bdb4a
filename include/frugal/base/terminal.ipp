// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/base/terminal.hpp>

#include <frugal/base/signals.hpp>
#include <frugal/inline.hpp>

#include <sys/ioctl.h>
#include <unistd.h>

namespace frugal::watch {

FRUGAL_INLINE TerminalSize terminal_size(std::FILE* file) {
  TerminalSize size;
  winsize told{};
  if (::ioctl(::fileno(file), TIOCGWINSZ, &told) != 0) return size;
  if (told.ws_col > 0) size.columns = told.ws_col;
  if (told.ws_row > 0) size.rows = told.ws_row;
  return size;
}

}  // namespace frugal::watch

namespace frugal::watch::detail {

FRUGAL_INLINE bool switched_on(char const* value) {
  std::string_view const text = value == nullptr ? "" : value;
  return !text.empty() && text != "0" && text != "false";
}

}  // namespace frugal::watch::detail

namespace frugal::watch {

FRUGAL_INLINE bool redraws(std::FILE* file, char const* term, char const* ci,
                           char const* notebook) {
  if (file == nullptr || ::isatty(::fileno(file)) != 1) return false;
  return detail::moves_cursor(term) && !detail::switched_on(ci) && notebook == nullptr;
}

FRUGAL_INLINE bool wants_colors(char const* term, char const* no_color) {
  if (no_color != nullptr && *no_color != '\0') return false;
  return detail::moves_cursor(term);
}

FRUGAL_INLINE bool write_text(std::FILE* out, std::string_view text) {
  frugal::detail::SigpipeGuard const quiet;
  bool const whole = std::fwrite(text.data(), 1, text.size(), out) == text.size();
  return std::fflush(out) == 0 && whole;
}

}  // namespace frugal::watch
