// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <signal.h>

#include <array>
#include <csignal>
#include <cstddef>
#include <mutex>

namespace frugal::detail {

/// Signal handlers of the process, shared by all users, because a process has only one handler per
/// signal. The first user installs the handlers, the last one restores the former ones. Users join
/// and leave in the program's own threads, never in a handler.
class SignalHandlers {
 public:
  using Handler = void (*)(int);

  /// Calls `take(*this)` for the first user; it calls the two functions below.
  template <class Take>
  void join(Take&& take) {
    std::scoped_lock const lock(mutex_);
    if (users_++ == 0) take(*this);
  }

  /// Handles the signal, whatever the program did with it.
  void take(int signal, Handler handler);
  /// Handles the signal only if the program neither handles nor ignores it.
  void take_if_default(int signal, Handler handler);

  /// Restores the former handlers; `stand_in` replaces the default action. A handler that the
  /// program has installed meanwhile stays.
  void release(Handler stand_in = SIG_DFL);
  /// Restores the former handlers, and the stand-in of an earlier user among them.
  void put_back();

 private:
  struct Taken {
    int signal = 0;
    Handler by = nullptr;
    struct sigaction former{};
  };

  void restore();

  static bool is(struct sigaction const& action, Handler handler) {
    return (action.sa_flags & SA_SIGINFO) == 0 && action.sa_handler == handler;
  }

  std::mutex mutex_;
  int users_ = 0;
  Handler stand_in_ = SIG_DFL;
  std::array<Taken, 2> taken_{};
  std::size_t count_ = 0;
};

/// For its lifetime, a write to a pipe without a reader fails with EPIPE in this thread and has no
/// other effect. The process's own handling of SIGPIPE, which by default ends it, is unchanged, and
/// so is errno.
class [[nodiscard]] SigpipeGuard {
 public:
  SigpipeGuard();
  ~SigpipeGuard();
  SigpipeGuard(SigpipeGuard const&) = delete;
  SigpipeGuard& operator=(SigpipeGuard const&) = delete;

 private:
  sigset_t set_{};
  sigset_t before_{};
  bool blocks_ = false;
};

}  // namespace frugal::detail

#ifndef FRUGAL_COMPILED
#include <frugal/base/signals.ipp>
#endif
