// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/error.hpp>
#include <frugal/store/io_error.hpp>

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <map>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

extern char** environ;  // POSIX; unistd.h has it only for GNU's flavour

namespace frugal {

/// A program and its arguments, started without a shell: nothing in a name is ever interpreted.
using Command = std::vector<std::string>;

namespace detail {

/// The command with {key} replaced in every argument, also within one.
inline Command filled(Command command, std::map<std::string, std::string> const& values) {
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
        out += value->second;  // not looked at again: a name may have braces in it
        at = end + 1;
      }
    }
    argument = std::move(out);
  }
  return command;
}

inline std::string words_of(Command const& command) {
  std::string out;
  for (std::string const& argument : command) out += (out.empty() ? "" : " ") + argument;
  return out;
}

/// Starts a command and waits for it. StoreError unless it ends with 0; the end of what it said is
/// in the text.
inline void run_command(Command const& command) {
  auto const fail = [&](std::string why) {
    throw StoreError({.what = "a command of the archive failed",
                      .where = words_of(command),
                      .why = std::move(why),
                      .mend = "Try the command by hand; nothing was deleted because of it."});
  };
  if (command.empty()) fail("it is empty");
  std::array<int, 2> said{};
  if (::pipe2(said.data(), O_CLOEXEC) != 0) throw io_error("pipe2", command[0], errno);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_adddup2(&actions, said[1], 1);
  ::posix_spawn_file_actions_adddup2(&actions, said[1], 2);
  std::vector<char*> arguments;
  for (std::string const& argument : command) {
    arguments.push_back(const_cast<char*>(argument.c_str()));
  }
  arguments.push_back(nullptr);
  pid_t pid = 0;
  int const started =
      ::posix_spawnp(&pid, arguments[0], &actions, nullptr, arguments.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  ::close(said[1]);
  if (started != 0) {
    ::close(said[0]);
    fail("it cannot be started: " + std::generic_category().message(started));
  }
  std::string text;
  std::array<char, 4096> piece{};
  for (ssize_t got = 0; (got = ::read(said[0], piece.data(), piece.size())) != 0;) {
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) break;
    text.append(piece.data(), static_cast<std::size_t>(got));
    if (text.size() > 2000) text.erase(0, text.size() - 1000);
  }
  ::close(said[0]);
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0) {
    if (errno != EINTR) throw io_error("waitpid", command[0], errno);
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return;
  while (!text.empty() && text.back() == '\n') text.pop_back();
  fail((WIFSIGNALED(status) ? "signal " + std::to_string(WTERMSIG(status))
                            : "exit code " + std::to_string(WEXITSTATUS(status))) +
       (text.empty() ? ", and it said nothing" : ", and it said \"" + text + "\""));
}

}  // namespace detail

}  // namespace frugal
