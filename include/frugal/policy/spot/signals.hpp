// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <string>

#include <frugal/store/signal_handlers.hpp>

namespace frugal::detail {

/// Takes SIGTERM, and in a SLURM job SIGUSR1, for as long as it lives, and puts back what was
/// there. The handler does nothing but set a flag: it may run in any thread, in the middle of
/// anything.
///
/// One at a time, for a process has one handler of a signal: a second one (two fits in two threads)
/// shares the first one's, and both are told.
class [[nodiscard]] PreemptionSignals {
 public:
  PreemptionSignals() {
    handlers().join([](SignalHandlers& all) {
      flag().store(0);
      all.take(SIGTERM, hear);
      // sbatch --signal=B:USR1@120 asks for it; elsewhere SIGUSR1 is the program's own.
      if (std::getenv("SLURM_JOB_ID") != nullptr) all.take(SIGUSR1, hear);
    });
  }
  PreemptionSignals(PreemptionSignals const&) = delete;
  PreemptionSignals& operator=(PreemptionSignals const&) = delete;
  ~PreemptionSignals() {
    if (!kept_) handlers().leave(next_ends_ ? end : SIG_DFL);
  }

  /// The process is about to end: a second signal must not change the code that it ends with.
  void keep() { kept_ = true; }
  /// The process ends soon, when its program has done: a second signal ends it at once, and must
  /// not change the code either. A handler of the program's own is put back all the same.
  void next_ends() { next_ends_ = true; }
  /// The code that such a signal ends the process with.
  static void set_code(int code) { code_of_end().store(code); }

  bool asked() const { return flag().load(std::memory_order_relaxed) != 0; }

  /// "SIGTERM", of the signal that came.
  static std::string name() { return flag().load() == SIGUSR1 ? "SIGUSR1" : "SIGTERM"; }

 private:
  static SignalHandlers& handlers() {
    static SignalHandlers all;
    return all;
  }
  static std::atomic<int>& flag() {
    static std::atomic<int> signal{0};
    static_assert(std::atomic<int>::is_always_lock_free);  // else a handler may not touch it
    return signal;
  }
  static std::atomic<int>& code_of_end() {
    static std::atomic<int> code{75};
    return code;
  }

  static void hear(int signal) { flag().store(signal, std::memory_order_relaxed); }
  static void end(int) { ::_exit(code_of_end().load()); }

  bool kept_ = false;
  bool next_ends_ = false;
};

}  // namespace frugal::detail
