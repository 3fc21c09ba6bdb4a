// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdlib>  // defines __GLIBC__ under glibc
#ifdef __GLIBC__
#include <malloc.h>
#endif

#include <frugal/core/compose/about.hpp>
#include <frugal/core/compose/policy.hpp>
#include <frugal/core/run/phases.hpp>
#include <frugal/inline.hpp>
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
  FRUGAL_INLINE static bool keep() {
#ifdef __GLIBC__
    constexpr int growth = 64 << 20;  // bytes; reduces the number of calls while the heap grows
    return mallopt(M_MMAP_MAX, 0) == 1 && mallopt(M_TRIM_THRESHOLD, -1) == 1 &&
           mallopt(M_TOP_PAD, growth) == 1;
#else
    return false;
#endif
  }
};

}  // namespace frugal
