// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <iostream>
#include <string>

#include <frugal/base/signal_handlers.hpp>
#include <frugal/core/run/run_state.hpp>
#include <frugal/inline.hpp>

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

  FRUGAL_INLINE void take() {
    if (taken_) return;
    taken_ = true;
    handlers().join([](SignalHandlers& all) {
      flag().store(0);
      on_terminal().store(::isatty(STDERR_FILENO) == 1);
      all.take_if_default(SIGINT, on_signal);
      all.take_if_default(SIGPIPE, hear_pipe);
    });
  }

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

  FRUGAL_INLINE static void on_signal(int) {
    if (flag().exchange(1) != 0) ::_exit(130);
    // The step may take long, so answer at once. Only on a terminal: a write to a pipe may raise
    // SIGPIPE.
    if (!on_terminal().load(std::memory_order_relaxed)) return;
    static constexpr char text[] =
        "\nfrugal: Ctrl-C: finishing the step and saving; a second one exits at once\n";
    int const before = errno;
    [[maybe_unused]] auto const written = ::write(STDERR_FILENO, text, sizeof text - 1);
    errno = before;
  }

  /// In `trainer | tee log` Ctrl-C ends tee as well, and the next line that the program prints
  /// would end it before it has saved. Before a Ctrl-C such a line ends the process as usual;
  /// Progress and Log never raise SIGPIPE.
  FRUGAL_INLINE static void hear_pipe(int) {
    if (flag().load(std::memory_order_relaxed) != 0) return;
    struct sigaction action{};
    action.sa_handler = SIG_DFL;
    ::sigaction(SIGPIPE, &action, nullptr);
    ::raise(SIGPIPE);
  }

  bool taken_ = false;
};

/// Reports the state of a run that Ctrl-C has ended, in one line on stderr.
FRUGAL_INLINE void report_interrupted(RunState const& run, bool has_begun) {
  std::string line = "frugal: Ctrl-C: ";
  std::string const step = std::to_string(run.counters.step);
  if (!has_begun) {
    line += "nothing was trained; run the same command again to begin";
  } else if (!run.status.unsaved.empty()) {
    line += "stopped at step " + step + ", and that is not saved: " + run.status.unsaved;
  } else if (!run.status.preempted) {
    line += "the run had come to its end, at step " + step + ", and is saved";
  } else {
    line += "saved at step " + step + "; run the same command again to resume";
  }
  std::cerr << line << '\n' << std::flush;
}

}  // namespace frugal::detail
