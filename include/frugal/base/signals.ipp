// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/base/signals.hpp>

#include <frugal/inline.hpp>

#include <pthread.h>

#include <cerrno>
#include <ctime>

namespace frugal::detail {

FRUGAL_INLINE void SignalHandlers::take(int signal, Handler handler) {
  struct sigaction action{};
  action.sa_handler = handler;
  sigemptyset(&action.sa_mask);
  // Interrupted reads and writes continue: other code need not know of the signal.
  action.sa_flags = SA_RESTART;
  Taken taken{.signal = signal, .by = handler};
  if (::sigaction(signal, &action, &taken.former) != 0) return;
  taken_.at(count_++) = taken;
}

FRUGAL_INLINE void SignalHandlers::take_if_default(int signal, Handler handler) {
  struct sigaction now{};
  if (::sigaction(signal, nullptr, &now) == 0 && is(now, SIG_DFL)) take(signal, handler);
}

FRUGAL_INLINE void SignalHandlers::release(Handler stand_in) {
  std::scoped_lock const lock(mutex_);
  if (--users_ != 0) return;
  for (std::size_t i = 0; i < count_; ++i) {
    struct sigaction& former = taken_[i].former;
    if (is(former, SIG_DFL) || is(former, stand_in_)) former.sa_handler = stand_in;
  }
  stand_in_ = stand_in;
  restore();
}

FRUGAL_INLINE void SignalHandlers::put_back() {
  std::scoped_lock const lock(mutex_);
  if (--users_ == 0) restore();
}

FRUGAL_INLINE void SignalHandlers::restore() {
  for (; count_ != 0; --count_) {
    Taken const& taken = taken_[count_ - 1];
    struct sigaction now{};
    if (::sigaction(taken.signal, nullptr, &now) != 0 || !is(now, taken.by)) continue;
    ::sigaction(taken.signal, &taken.former, nullptr);
  }
}

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
