// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/policy/checkpoint/interrupt.hpp>

#include <frugal/core/run/run_state.hpp>
#include <frugal/inline.hpp>

#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <iostream>
#include <string>

namespace frugal::detail {

FRUGAL_INLINE void InterruptSignal::take() {
  if (taken_) return;
  taken_ = true;
  handlers().join([](SignalHandlers& all) {
    flag().store(0);
    on_terminal().store(::isatty(STDERR_FILENO) == 1);
    all.take_if_default(SIGINT, on_signal);
    all.take_if_default(SIGPIPE, hear_pipe);
  });
}

FRUGAL_INLINE void InterruptSignal::on_signal(int) {
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

FRUGAL_INLINE void InterruptSignal::hear_pipe(int) {
  if (flag().load(std::memory_order_relaxed) != 0) return;
  struct sigaction action{};
  action.sa_handler = SIG_DFL;
  ::sigaction(SIGPIPE, &action, nullptr);
  ::raise(SIGPIPE);
}

FRUGAL_INLINE void report_interrupted(RunState const& run, bool has_begun) {
  std::string line = "frugal: Ctrl-C: ";
  std::string const step = std::to_string(run.counters().step);
  if (!has_begun) {
    line += "nothing was trained; run the same command again to begin";
  } else if (!run.control.unsaved().empty()) {
    line += "stopped at step " + step + ", and that is not saved: " + run.control.unsaved();
  } else if (!run.control.preempted()) {
    line += "the run had come to its end, at step " + step + ", and is saved";
  } else {
    line += "saved at step " + step + "; run the same command again to resume";
  }
  std::cerr << line << '\n' << std::flush;
}

}  // namespace frugal::detail
