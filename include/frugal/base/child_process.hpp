// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/base/descriptor.hpp>
#include <frugal/base/io_error.hpp>
#include <frugal/inline.hpp>

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
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
  FRUGAL_INLINE ProcessEnd wait() {
    ProcessEnd out;
    while (true) {
      std::array<pollfd, 2> wanted{{{.fd = end_.get(), .events = POLLIN, .revents = 0},
                                    {.fd = said_.get(), .events = POLLIN, .revents = 0}}};
      int const ready = ::poll(wanted.data(), said_.get() < 0 ? 1 : 2, left());
      if (ready < 0 && errno == EINTR) continue;
      if (ready == 0 && Clock::now() < deadline_ && !stop_.stop_requested()) continue;
      if (ready <= 0) {
        out.how = ProcessEnd::How::late;
        break;
      }
      if (said_.get() >= 0 && wanted[1].revents != 0 && !listen(out.said)) said_.close();
      if (wanted[0].revents == 0) continue;
      Message message{};
      if (::read(end_.get(), &message, sizeof message) == sizeof message) {
        out.how = message.how;
        out.code = message.code;
        ended_ = true;
      }
      break;
    }
    while (said_.get() >= 0 && listen(out.said)) {
    }
    return out;
  }

 private:
  using Clock = std::chrono::steady_clock;

  struct Message {
    ProcessEnd::How how;
    int code;
  };

  FRUGAL_INLINE static std::pair<Descriptor, Descriptor> pipe_of(std::string const& command) {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) throw io_error("pipe2", command, errno);
    return {Descriptor(ends[0]), Descriptor(ends[1])};
  }

  FRUGAL_INLINE static void tell(int pipe, ProcessEnd::How how, int code) {
    Message const message{.how = how, .code = code};
    (void)!::write(pipe, &message, sizeof message);  // on failure it is not read
  }

  /// The watcher, and in its child the program. Between fork and exec only async-signal-safe calls
  /// are allowed: another thread may have held any lock.
  [[noreturn]] FRUGAL_INLINE static void watch(char** arguments, ProcessLimits const& limits,
                                               int says, int ends) {
    ::setpgid(0, 0);
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    ::signal(SIGCHLD, SIG_DFL);  // for both: programs rely on the default too
    pid_t const program = ::fork();
    if (program < 0) {
      tell(ends, ProcessEnd::How::not_started, errno);
      ::_exit(0);
    }
    if (program == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (limits.largest_file <= std::uint64_t{std::numeric_limits<std::int64_t>::max()}) {
        rlimit const size{.rlim_cur = limits.largest_file, .rlim_max = limits.largest_file};
        ::setrlimit(RLIMIT_FSIZE, &size);
      }
      // Above 0, 1 and 2, which may have been closed.
      says = ::fcntl(says, F_DUPFD_CLOEXEC, 3);
      ends = ::fcntl(ends, F_DUPFD_CLOEXEC, 3);
      int const nothing = ::open("/dev/null", O_RDONLY);
      if (nothing >= 0 && ::dup2(nothing, 0) == 0 && ::dup2(says, 1) == 1 && ::dup2(says, 2) == 2) {
        if (nothing > 2) ::close(nothing);
        ::execvp(arguments[0], arguments);
      }
      tell(ends, ProcessEnd::How::not_started, errno);
      ::_exit(127);
    }
    ::close(says);
    int status = 0;
    while (::waitpid(program, &status, 0) < 0 && errno == EINTR) {
    }
    // If the program did not start, this is the second message, which is not read.
    if (WIFSIGNALED(status)) {
      tell(ends, ProcessEnd::How::killed, WTERMSIG(status));
    } else {
      tell(ends, ProcessEnd::How::exited, WEXITSTATUS(status));
    }
    ::_exit(0);
  }

  /// Milliseconds until the deadline, rounded up, for poll(); of a program that can be stopped,
  /// until it is time to look whether it is.
  FRUGAL_INLINE int left() const {
    auto const left =
        std::chrono::ceil<std::chrono::milliseconds>(deadline_ - Clock::now()).count();
    return static_cast<int>(
        std::clamp<std::int64_t>(left, 0, stop_.stop_possible() ? 50 : 1'000'000'000));
  }

  /// Reads what is available. False at the end, and when nothing more is available now.
  FRUGAL_INLINE bool listen(std::string& text) const {
    std::array<char, 4096> piece;
    ssize_t const got = ::read(said_.get(), piece.data(), piece.size());
    if (got < 0) return errno == EINTR;
    text.append(piece.data(), static_cast<std::size_t>(got));
    if (text.size() > 2000) text.erase(0, text.size() - 1000);
    return got > 0;
  }

  /// Kills the group, so that the children of a shell die too.
  void kill() const {
    if (watcher_ > 0) ::kill(-watcher_, SIGKILL);
  }
  FRUGAL_INLINE void reap() {
    // If SIGCHLD is ignored, this also waits, and then returns ECHILD.
    while (watcher_ > 0 && ::waitpid(watcher_, nullptr, 0) < 0 && errno == EINTR) {
    }
    watcher_ = 0;
  }

  Clock::time_point deadline_;
  std::stop_token stop_;
  pid_t watcher_ = 0;
  bool ended_ = false;
  Descriptor said_;
  Descriptor end_;
};

}  // namespace frugal::detail
