// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <signal.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <string>

namespace frugal::detail {

/// Takes SIGTERM, and in a SLURM job SIGUSR1, for as long as it lives, and puts back what was
/// there. The handler does nothing but set a flag: it may run in any thread, in the middle of
/// anything.
///
/// One at a time, for a process has one handler of a signal: a second one (two fits in two threads)
/// shares the first one's, and both are told.
class PreemptionSignals {
 public:
  PreemptionSignals() {
    if (users().fetch_add(1) != 0) return;
    flag().store(0);
    take(SIGTERM);
    // sbatch --signal=B:USR1@120 asks for it; elsewhere SIGUSR1 is the program's own.
    if (std::getenv("SLURM_JOB_ID") != nullptr) take(SIGUSR1);
  }
  PreemptionSignals(PreemptionSignals const&) = delete;
  PreemptionSignals& operator=(PreemptionSignals const&) = delete;
  ~PreemptionSignals() {
    if (kept_ || users().fetch_sub(1) != 1) return;
    for (Former& former : formers()) {
      if (former.signal != 0) ::sigaction(former.signal, &former.action, nullptr);
      former.signal = 0;
    }
  }

  /// The process is about to end: a second signal must not change the code that it ends with.
  void keep() { kept_ = true; }

  bool asked() const { return flag().load(std::memory_order_relaxed) != 0; }

  /// "SIGTERM", of the signal that came.
  static std::string name() { return flag().load() == SIGUSR1 ? "SIGUSR1" : "SIGTERM"; }

 private:
  struct Former {
    int signal = 0;
    struct sigaction action{};
  };

  static std::atomic<int>& flag() {
    static std::atomic<int> signal{0};
    static_assert(std::atomic<int>::is_always_lock_free);  // else a handler may not touch it
    return signal;
  }
  static std::atomic<int>& users() {
    static std::atomic<int> count{0};
    return count;
  }
  static std::array<Former, 2>& formers() {
    static std::array<Former, 2> all;
    return all;
  }

  static void take(int signal) {
    struct sigaction action{};
    action.sa_handler = [](int which) { flag().store(which, std::memory_order_relaxed); };
    sigemptyset(&action.sa_mask);
    // Reads and writes under way go on: nobody has to know that there was a signal.
    action.sa_flags = SA_RESTART;
    Former& former = formers()[signal == SIGTERM ? 0 : 1];
    if (::sigaction(signal, &action, &former.action) == 0) former.signal = signal;
  }

  bool kept_ = false;
};

}  // namespace frugal::detail
