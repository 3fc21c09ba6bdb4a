// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>

#include <frugal/base/signals.hpp>

namespace frugal {
struct RunState;
}  // namespace frugal

namespace frugal::detail {

/// Handles Ctrl-C (SIGINT) from take() to destruction, unless the program handles or ignores it.
/// The first one sets a flag, the second one ends the process with code 130.
///
/// The flag is shared: of two fits in two threads, or of nested ones, both see it.
class InterruptSignal {
 public:
  InterruptSignal() = default;
  InterruptSignal(InterruptSignal const&) = delete;
  InterruptSignal& operator=(InterruptSignal const&) = delete;
  ~InterruptSignal() {
    if (taken_) handlers().release();
  }

  void take();

  bool requested() const { return taken_ && flag().load(std::memory_order_relaxed) != 0; }

 private:
  static SignalHandlers& handlers() {
    static SignalHandlers all;
    return all;
  }
  static std::atomic<int>& flag() {
    static std::atomic<int> came{0};
    static_assert(std::atomic<int>::is_always_lock_free);  // else a handler may not touch it
    return came;
  }
  static std::atomic<bool>& on_terminal() {
    static std::atomic<bool> is{false};
    return is;
  }

  static void on_signal(int);

  /// In `trainer | tee log` Ctrl-C ends tee as well, and the next line that the program prints
  /// would end it before it has saved. Before a Ctrl-C such a line ends the process as usual;
  /// Progress and Log never raise SIGPIPE.
  static void hear_pipe(int);

  bool taken_ = false;
};

/// Reports the state of a run that Ctrl-C has ended, in one line on stderr.
void report_interrupted(RunState const& run, bool has_begun);

}  // namespace frugal::detail

#ifndef FRUGAL_COMPILED
#include <frugal/policy/checkpoint/interrupt.ipp>
#endif
