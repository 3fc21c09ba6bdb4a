// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

namespace frugal::detail {

/// Whether a line of a log is an event of that name.
bool is_event(std::string_view line, std::string_view event);

/// The events that a run which has gone back writes again: those of the log itself, and the marks
/// of Audit.
inline constexpr std::array<std::string_view, 6> repeated_events{"begin", "step", "validation",
                                                                 "epoch", "end",  "audit"};

bool is_repeated(std::string_view line);

/// The lines of a log that could not be written yet.
class WaitingLines {
 public:
  std::string const& text() const { return text_; }
  bool empty() const { return text_.empty(); }
  void clear() { text_.clear(); }

  /// All of `lines`, or none of them if they became more than `most` bytes. True if they are kept.
  bool add(std::string_view lines, std::size_t most);

  /// A resume has those that waited when the checkpoint was made.
  void resume(std::string saved) { text_ = std::move(saved); }

  /// A return within the run has them too, but no event happens again: those after the checkpoint
  /// still wait, and those that were written meanwhile do not.
  void go_back(std::string_view saved);

 private:
  static void append(std::string_view lines, bool repeated, std::string& out);

  std::string text_;
};

}  // namespace frugal::detail

#ifndef FRUGAL_COMPILED
#include <frugal/report/log/waiting_lines.ipp>
#endif
