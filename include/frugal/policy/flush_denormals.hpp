// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/core/compose/about.hpp>
#include <frugal/core/compose/policy.hpp>
#include <frugal/core/run/phases.hpp>
#include <frugal/policy/kinds.hpp>

namespace frugal {

/// Flushes denormal numbers, below 1.2e-38 in FP32, to zero during a fit.
///
/// Lever   hours per run on a CPU: the moments of a parameter whose gradient has become zero decay
///         into the denormal range, where each operation takes a hundred cycles or more.
/// Cost    a control register per thread when fit begins and ends; nothing per step.
/// State   none. The mode of the compute threads is restored when the fit ends, also by an
///         exception.
/// Errors  none; on a processor without the mode it does nothing and says so in Report::warnings.
/// Source  torch.set_flush_denormal, which sets the calling thread alone.
///
/// Results differ from those without it by the effect of denormals. In a comparison, use it in both
/// runs or in neither.
struct FlushDenormals {
  using kind = kinds::flush_denormals;
  using listens = list<on::fit_begin>;

  static constexpr About about{Term::hours_per_run, "nothing; denormal numbers become zero"};

  class State {
   public:
    using transient = void;

    explicit State(FlushDenormals const&) {}
    ~State() {
      if (set_) set_all(false);
    }
    State(State const&) = delete;
    State& operator=(State const&) = delete;

    void on_fit_begin(FitBegin& phase) {
      if (flushes()) return;  // set by other code, which keeps it
      set_ = set_all(true);
      if (!set_) phase.warn("FlushDenormals does nothing here: the processor has no such mode.");
    }

   private:
    bool set_ = false;
  };

 private:
  /// Whether this thread flushes already. LibTorch can set the mode but not report it.
  static bool flushes();

  // The register is per thread, and existing threads of the pool do not inherit it.
  static bool set_all(bool on);
};

}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/policy/flush_denormals.ipp>
#endif
