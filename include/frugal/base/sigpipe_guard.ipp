// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/base/sigpipe_guard.hpp>

#include <frugal/inline.hpp>

#include <pthread.h>

#include <cerrno>
#include <ctime>

namespace frugal::detail {

FRUGAL_INLINE SigpipeGuard::SigpipeGuard() {
  sigset_t pending;
  ::sigpending(&pending);
  // A signal that is already pending belongs to other code, and stays pending.
  if (::sigismember(&pending, SIGPIPE) == 1) return;
  ::sigemptyset(&set_);
  ::sigaddset(&set_, SIGPIPE);
  blocks_ = ::pthread_sigmask(SIG_BLOCK, &set_, &before_) == 0;
}

FRUGAL_INLINE SigpipeGuard::~SigpipeGuard() {
  if (!blocks_) return;
  int const why = errno;
  timespec const at_once{};
  while (::sigtimedwait(&set_, nullptr, &at_once) < 0 && errno == EINTR) {
  }
  ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  errno = why;
}

}  // namespace frugal::detail
