// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <csignal>
#include <thread>
#include <utility>

namespace frugal::detail {

/// Blocks every signal in the calling thread for the lifetime of this object, except those that a
/// fault of the thread itself raises: blocking these would hide the fault.
class [[nodiscard]] BlockedSignals {
 public:
  BlockedSignals();
  BlockedSignals(BlockedSignals const&) = delete;
  BlockedSignals& operator=(BlockedSignals const&) = delete;
  ~BlockedSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_{};
};

/// Starts a thread that runs no signal handler: SIGTERM and SIGUSR1 go to the program's own
/// threads. The mask is inherited, so the new thread never takes a signal.
template <class Work>
std::thread signal_free_thread(Work work) {
  BlockedSignals const blocked;
  return std::thread(std::move(work));
}

}  // namespace frugal::detail

#ifndef FRUGAL_COMPILED
#include <frugal/base/signal_free_thread.ipp>
#endif
