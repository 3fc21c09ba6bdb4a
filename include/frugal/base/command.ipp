// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/base/command.hpp>

#include <frugal/error.hpp>
#include <frugal/inline.hpp>

#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <array>
#include <cstddef>
#include <string_view>
#include <system_error>
#include <utility>

namespace frugal::detail {

FRUGAL_INLINE ProcessEnd ChildProcess::wait() {
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

FRUGAL_INLINE std::pair<Descriptor, Descriptor> ChildProcess::pipe_of(std::string const& command) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) throw io_error("pipe2", command, errno);
  return {Descriptor(ends[0]), Descriptor(ends[1])};
}

FRUGAL_INLINE void ChildProcess::tell(int pipe, ProcessEnd::How how, int code) {
  Message const message{.how = how, .code = code};
  (void)!::write(pipe, &message, sizeof message);  // on failure it is not read
}

FRUGAL_INLINE void ChildProcess::watch(char** arguments, ProcessLimits const& limits, int says,
                                       int ends) {
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

FRUGAL_INLINE int ChildProcess::left() const {
  auto const left = std::chrono::ceil<std::chrono::milliseconds>(deadline_ - Clock::now()).count();
  return static_cast<int>(
      std::clamp<std::int64_t>(left, 0, stop_.stop_possible() ? 50 : 1'000'000'000));
}

FRUGAL_INLINE bool ChildProcess::listen(std::string& text) const {
  std::array<char, 4096> piece;
  ssize_t const got = ::read(said_.get(), piece.data(), piece.size());
  if (got < 0) return errno == EINTR;
  text.append(piece.data(), static_cast<std::size_t>(got));
  if (text.size() > 2000) text.erase(0, text.size() - 1000);
  return got > 0;
}

FRUGAL_INLINE void ChildProcess::reap() {
  // If SIGCHLD is ignored, this also waits, and then returns ECHILD.
  while (watcher_ > 0 && ::waitpid(watcher_, nullptr, 0) < 0 && errno == EINTR) {
  }
  watcher_ = 0;
}

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
