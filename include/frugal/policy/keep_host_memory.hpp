// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/core/compose/about.hpp>
#include <frugal/core/compose/policy.hpp>
#include <frugal/core/run/phases.hpp>
#include <frugal/policy/kinds.hpp>

namespace frugal {

/// Keeps freed host memory for the next step instead of returning it to the system.
///
/// Lever   hours per run on a CPU: glibc maps every block above 32 MiB afresh and returns the top
///         of the heap, so the kernel zeroes each step's activations again, page by page.
/// Cost    one call when fit begins, nothing per step. The process keeps its peak memory.
/// State   none, and process-wide: it is set when fit begins and stays, because glibc cannot report
///         the previous setting.
/// Errors  none; with a C library other than glibc it does nothing and says so in Report::warnings.
/// Source  mallopt(3): M_MMAP_MAX 0, M_TRIM_THRESHOLD -1, M_TOP_PAD.
struct KeepHostMemory {
  using kind = kinds::keep_host_memory;
  using listens = list<on::fit_begin>;

  static constexpr About about{Term::hours_per_run, "memory that was freed stays with the process"};

  class State {
   public:
    using transient = void;

    explicit State(KeepHostMemory const&) {}

    void on_fit_begin(FitBegin& phase) {
      if (!keep()) phase.warn("KeepHostMemory does nothing here: the C library is not glibc.");
    }
  };

 private:
  static bool keep();
};

}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/policy/keep_host_memory.ipp>
#endif
