// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <unistd.h>

#include <atomic>
#include <string>

#include <frugal/base/signals.hpp>

namespace frugal::detail {

/// Handles SIGTERM, and in a SLURM job SIGUSR1, during its lifetime, and restores the former
/// handlers afterwards. The handler only sets a flag: it may interrupt any thread anywhere.
///
/// A process has one handler per signal: a second object (two fits in two threads) shares it, and
/// both see the signal.
class [[nodiscard]] PreemptionSignals {
 public:
  /// `dry`: what an earlier fit has left stays, see next_ends().
  explicit PreemptionSignals(bool dry = false);
  PreemptionSignals(PreemptionSignals const&) = delete;
  PreemptionSignals& operator=(PreemptionSignals const&) = delete;
  ~PreemptionSignals() {
    if (kept_) return;
    if (dry_) {
      handlers().put_back();
      return;
    }
    handlers().release(next_ends_ ? end : SIG_DFL);
  }

  /// The process is about to end: a second signal must not change the exit code.
  void keep() { kept_ = true; }
  /// The program ends the process soon: a second signal ends it at once, and must not change the
  /// exit code either. The program's own handler is restored anyway.
  void next_ends() { next_ends_ = true; }
  /// The exit code after such a signal.
  static void set_code(int code) { code_of_end().store(code); }

  bool requested() const { return flag().load(std::memory_order_relaxed) != 0; }

  /// The name of the signal, such as "SIGTERM".
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

  static void on_signal(int signal) { flag().store(signal, std::memory_order_relaxed); }
  static void end(int) { ::_exit(code_of_end().load()); }

  bool dry_;
  bool kept_ = false;
  bool next_ends_ = false;
};

}  // namespace frugal::detail

#ifndef FRUGAL_COMPILED
#include <frugal/policy/spot/signals.ipp>
#endif
