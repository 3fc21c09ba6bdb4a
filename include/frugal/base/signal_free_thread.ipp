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

}  // namespace frugal::detail
