// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/report/log/waiting_lines.hpp>

#include <frugal/inline.hpp>

#include <algorithm>

namespace frugal::detail {

FRUGAL_INLINE bool is_event(std::string_view line, std::string_view event) {
  constexpr std::string_view begin = R"({"event":")";
  return line.starts_with(begin) && line.substr(begin.size()).starts_with(event) &&
         line.substr(begin.size() + event.size()).starts_with('"');
}

FRUGAL_INLINE bool is_repeated(std::string_view line) {
  return std::any_of(repeated_events.begin(), repeated_events.end(),
                     [&](std::string_view event) { return is_event(line, event); });
}

FRUGAL_INLINE bool WaitingLines::add(std::string_view lines, std::size_t most) {
  if (text_.size() + lines.size() > most) return false;
  text_ += lines;
  return true;
}

FRUGAL_INLINE void WaitingLines::go_back(std::string_view saved) {
  bool const still = text_.starts_with(saved);
  std::string out(still ? saved : "");
  if (!still) append(saved, true, out);
  append(std::string_view(text_).substr(still ? saved.size() : 0), false, out);
  text_ = std::move(out);
}

FRUGAL_INLINE void WaitingLines::append(std::string_view lines, bool repeated, std::string& out) {
  while (!lines.empty()) {
    std::string_view const line = lines.substr(0, lines.find('\n') + 1);
    if (line.empty()) return;
    if (is_repeated(line) == repeated) out += line;
    lines.remove_prefix(line.size());
  }
}

}  // namespace frugal::detail
