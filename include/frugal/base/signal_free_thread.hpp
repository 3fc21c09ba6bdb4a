// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <functional>
#include <mutex>
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

/// Calls a function again and again, in a thread that takes no signals, until this object is
/// stopped. The function must not throw.
class PeriodicThread {
 public:
  /// A wait of 0 would spin, and one of centuries overflows the clock: 10 ms and 1e6 s are the
  /// least and the most.
  PeriodicThread(double seconds_between, std::function<void()> call)
      : between_(std::clamp(seconds_between, 0.01, 1e6)),
        call_(std::move(call)),
        thread_(signal_free_thread([this] { work(); })) {}
  PeriodicThread(PeriodicThread const&) = delete;
  PeriodicThread& operator=(PeriodicThread const&) = delete;
  ~PeriodicThread() { stop(); }

  /// No call is under way when it returns, and none follows.
  void stop();

 private:
  void work();

  std::chrono::duration<double> between_;
  std::function<void()> call_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool stopping_ = false;
  std::thread thread_;  // last: it uses the members above
};

}  // namespace frugal::detail

#ifndef FRUGAL_COMPILED
#include <frugal/base/signal_free_thread.ipp>
#endif
