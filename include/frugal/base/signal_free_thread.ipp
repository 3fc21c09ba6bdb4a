// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/base/signal_free_thread.hpp>
#include <frugal/inline.hpp>

namespace frugal::detail {

FRUGAL_INLINE BlockedSignals::BlockedSignals() {
  sigset_t all;
  sigfillset(&all);
  for (int const fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS}) {
    sigdelset(&all, fault);
  }
  pthread_sigmask(SIG_BLOCK, &all, &before_);
}

FRUGAL_INLINE void PeriodicThread::stop() {
  if (!thread_.joinable()) return;
  {
    std::scoped_lock const lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

FRUGAL_INLINE void PeriodicThread::work() {
  std::unique_lock lock(mutex_);
  while (!wake_.wait_for(lock, between_, [this] { return stopping_; })) call_();
}

}  // namespace frugal::detail
