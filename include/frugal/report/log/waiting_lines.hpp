// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

#include <frugal/inline.hpp>

namespace frugal::detail {

/// Whether a line of a log is an event of that name.
FRUGAL_INLINE bool is_event(std::string_view line, std::string_view event) {
  constexpr std::string_view begin = R"({"event":")";
  return line.starts_with(begin) && line.substr(begin.size()).starts_with(event) &&
         line.substr(begin.size() + event.size()).starts_with('"');
}

/// The events that a run which has gone back writes again: those of the log itself, and the marks
/// of Audit.
inline constexpr std::array<std::string_view, 6> repeated_events{"begin", "step", "validation",
                                                                 "epoch", "end",  "audit"};

FRUGAL_INLINE bool is_repeated(std::string_view line) {
  return std::any_of(repeated_events.begin(), repeated_events.end(),
                     [&](std::string_view event) { return is_event(line, event); });
}

/// The lines of a log that could not be written yet.
class WaitingLines {
 public:
  std::string const& text() const { return text_; }
  bool empty() const { return text_.empty(); }
  void clear() { text_.clear(); }

  /// All of `lines`, or none of them if they became more than `most` bytes. True if they are kept.
  FRUGAL_INLINE bool add(std::string_view lines, std::size_t most) {
    if (text_.size() + lines.size() > most) return false;
    text_ += lines;
    return true;
  }

  /// A resume has those that waited when the checkpoint was made.
  void resume(std::string saved) { text_ = std::move(saved); }

  /// A return within the run has them too, but no event happens again: those after the checkpoint
  /// still wait, and those that were written meanwhile do not.
  FRUGAL_INLINE void go_back(std::string_view saved) {
    bool const still = text_.starts_with(saved);
    std::string out(still ? saved : "");
    if (!still) append(saved, true, out);
    append(std::string_view(text_).substr(still ? saved.size() : 0), false, out);
    text_ = std::move(out);
  }

 private:
  FRUGAL_INLINE static void append(std::string_view lines, bool repeated, std::string& out) {
    while (!lines.empty()) {
      std::string_view const line = lines.substr(0, lines.find('\n') + 1);
      if (line.empty()) return;
      if (is_repeated(line) == repeated) out += line;
      lines.remove_prefix(line.size());
    }
  }

  std::string text_;
};

}  // namespace frugal::detail
