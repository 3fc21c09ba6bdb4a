// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cerrno>
#include <csignal>
#include <ctime>

#include <pthread.h>

#include <frugal/inline.hpp>

namespace frugal::detail {

/// For its lifetime, a write to a pipe without a reader fails with EPIPE in this thread and has no
/// other effect. The process's own handling of SIGPIPE, which by default ends it, is unchanged, and
/// so is errno.
class [[nodiscard]] SigpipeGuard {
 public:
  FRUGAL_INLINE SigpipeGuard() {
    sigset_t pending;
    ::sigpending(&pending);
    // A signal that is already pending belongs to other code, and stays pending.
    if (::sigismember(&pending, SIGPIPE) == 1) return;
    ::sigemptyset(&set_);
    ::sigaddset(&set_, SIGPIPE);
    blocks_ = ::pthread_sigmask(SIG_BLOCK, &set_, &before_) == 0;
  }
  FRUGAL_INLINE ~SigpipeGuard() {
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
