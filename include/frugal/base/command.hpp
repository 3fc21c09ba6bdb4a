// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <frugal/base/descriptor.hpp>
#include <frugal/base/io_error.hpp>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <limits>
#include <map>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

namespace frugal::detail {

/// Limits of a program.
struct ProcessLimits {
  std::chrono::seconds patience{std::chrono::hours(24 * 365)};             ///< from start to end
  std::uint64_t largest_file = std::numeric_limits<std::uint64_t>::max();  ///< in bytes
  std::stop_token stop{};  ///< once requested, the program is late
};

/// How a program ended.
struct ProcessEnd {
  enum class How { exited, killed, not_started, late, unknown };

  How how = How::unknown;
  int code = 0;      ///< exit code, signal number or errno
  std::string said;  ///< the end of its output and error output
};

/// A program that runs in its own process group, with empty input.
///
/// A watcher process waits for the program and reports through a pipe how it ended. So the result
/// does not depend on this process's SIGCHLD handling: a process that ignores SIGCHLD, or in which
/// another part reaps every child, would lose the exit status.
class ChildProcess {
 public:
  /// IoError if no process or descriptor is available. `command` must not be empty.
  ChildProcess(std::vector<std::string> const& command, ProcessLimits const& limits)
      : deadline_(Clock::now() + limits.patience), stop_(limits.stop) {
    auto [said, says] = pipe_of(command[0]);
    auto [end, ends] = pipe_of(command[0]);
    std::vector<char*> arguments;
    arguments.reserve(command.size() + 1);
    for (std::string const& argument : command) {
      arguments.push_back(const_cast<char*>(argument.c_str()));
    }
    arguments.push_back(nullptr);
    watcher_ = ::fork();
    if (watcher_ < 0) throw io_error("fork", command[0], errno);
    if (watcher_ == 0) watch(arguments.data(), limits, says.get(), ends.get());
    ::setpgid(watcher_, watcher_);  // both sides call it, so neither has to wait for the other
    said_ = std::move(said);
    end_ = std::move(end);
    // A background process of the program may hold the pipe open for ever: read only what is there.
    ::fcntl(said_.get(), F_SETFL, O_NONBLOCK);
  }
  ChildProcess(ChildProcess const&) = delete;
  ChildProcess& operator=(ChildProcess const&) = delete;
  ~ChildProcess() {
    if (!ended_) kill();
    reap();
  }

  /// Waits until the program ends or is late. Call once. The destructor kills a late program with
  /// all of its children; they also die if this process is killed.
  ProcessEnd wait();

 private:
  using Clock = std::chrono::steady_clock;

  struct Message {
    ProcessEnd::How how;
    int code;
  };

  static std::pair<Descriptor, Descriptor> pipe_of(std::string const& command);

  static void tell(int pipe, ProcessEnd::How how, int code);

  /// The watcher, and in its child the program. Between fork and exec only async-signal-safe calls
  /// are allowed: another thread may have held any lock.
  [[noreturn]] static void watch(char** arguments, ProcessLimits const& limits, int says, int ends);

  /// Milliseconds until the deadline, rounded up, for poll(); of a program that can be stopped,
  /// until it is time to look whether it is.
  int left() const;

  /// Reads what is available. False at the end, and when nothing more is available now.
  bool listen(std::string& text) const;

  /// Kills the group, so that the children of a shell die too.
  void kill() const {
    if (watcher_ > 0) ::kill(-watcher_, SIGKILL);
  }
  void reap();

  Clock::time_point deadline_;
  std::stop_token stop_;
  pid_t watcher_ = 0;
  bool ended_ = false;
  Descriptor said_;
  Descriptor end_;
};

}  // namespace frugal::detail

namespace frugal {

/// A program and its arguments. It is started without a shell, so names are never interpreted.
using Command = std::vector<std::string>;

namespace detail {

/// The command with {key} replaced in every argument, also within one.
Command filled(Command command, std::map<std::string, std::string> const& values);

std::string words_of(Command const& command);

/// Runs a command and waits for it. Empty if it exits with 0 in time; otherwise why it failed,
/// which quotes the end of its output.
std::string failure_of(Command const& command, ProcessLimits const& limits = {});

/// Runs a command; throws StoreError if it fails.
void run_command(Command const& command, ProcessLimits const& limits = {});

}  // namespace detail

}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/base/command.ipp>
#endif
