// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cerrno>
#include <csignal>
#include <ctime>

#include <pthread.h>

namespace frugal::detail {

/// While it lives, a write to a pipe that nobody reads fails with EPIPE in this thread and does
/// nothing else: the process's own handling of SIGPIPE, which by default ends it, is left alone.
/// errno outlives it.
class SigpipeGuard {
 public:
  SigpipeGuard() {
    sigset_t pending;
    ::sigpending(&pending);
    // One that waits already is somebody else's, and stays.
    if (::sigismember(&pending, SIGPIPE) == 1) return;
    ::sigemptyset(&set_);
    ::sigaddset(&set_, SIGPIPE);
    blocks_ = ::pthread_sigmask(SIG_BLOCK, &set_, &before_) == 0;
  }
  ~SigpipeGuard() {
    if (!blocks_) return;
    int const why = errno;
    timespec const at_once{};
    while (::sigtimedwait(&set_, nullptr, &at_once) < 0 && errno == EINTR) {
    }
    ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
    errno = why;
  }
  SigpipeGuard(SigpipeGuard const&) = delete;
  SigpipeGuard& operator=(SigpipeGuard const&) = delete;

 private:
  sigset_t set_{};
  sigset_t before_{};
  bool blocks_ = false;
};

}  // namespace frugal::detail
