// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/base/command.hpp>

#include <frugal/error.hpp>
#include <frugal/inline.hpp>

#include <signal.h>

#include <cstddef>
#include <string_view>
#include <system_error>
#include <utility>

namespace frugal::detail {

FRUGAL_INLINE Command filled(Command command, std::map<std::string, std::string> const& values) {
  for (std::string& argument : command) {
    std::string out;
    for (std::size_t at = 0; at < argument.size();) {
      std::size_t const end = argument[at] == '{' ? argument.find('}', at) : std::string::npos;
      auto const value = end == std::string::npos
                             ? values.end()
                             : values.find(argument.substr(at + 1, end - at - 1));
      if (value == values.end()) {
        out += argument[at++];
      } else {
        out += value->second;  // not expanded again: a name may contain braces
        at = end + 1;
      }
    }
    argument = std::move(out);
  }
  return command;
}

FRUGAL_INLINE std::string words_of(Command const& command) {
  std::string out;
  for (std::string const& argument : command) out += (out.empty() ? "" : " ") + argument;
  return out;
}

FRUGAL_INLINE std::string failure_of(Command const& command, ProcessLimits const& limits) {
  if (command.empty()) return "it is empty";
  ProcessEnd const end = ChildProcess(command, limits).wait();
  std::string how;
  switch (end.how) {
    case ProcessEnd::How::exited:
      if (end.code == 0) return {};
      how = "exit code " + std::to_string(end.code);
      break;
    case ProcessEnd::How::killed:
      how = "signal " + std::to_string(end.code);
      if (end.code == SIGXFSZ) {
        how += ", for a file of more than " + std::to_string(limits.largest_file) + " bytes";
      }
      break;
    case ProcessEnd::How::not_started:
      return "it cannot be started: " + std::generic_category().message(end.code);
    case ProcessEnd::How::late:
      how =
          "it had not ended after " + std::to_string(limits.patience.count()) + " s and was killed";
      break;
    case ProcessEnd::How::unknown:
      how = "the process that waited for it was killed";
      break;
  }
  std::string_view text = end.said;
  while (text.ends_with('\n')) text.remove_suffix(1);
  return how +
         (text.empty() ? ", and it said nothing" : ", and it said \"" + std::string(text) + "\"");
}

FRUGAL_INLINE void run_command(Command const& command, ProcessLimits const& limits) {
  std::string why = failure_of(command, limits);
  if (why.empty()) return;
  throw StoreError({.what = "a command of the archive failed",
                    .where = words_of(command),
                    .why = std::move(why),
                    .fix = "Run the command by hand; nothing was deleted."});
}

}  // namespace frugal::detail
