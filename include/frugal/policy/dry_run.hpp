// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <iostream>
#include <ostream>
#include <string>

#include <frugal/core/compose/about.hpp>
#include <frugal/core/compose/policy.hpp>
#include <frugal/core/run/check.hpp>
#include <frugal/core/run/phases.hpp>
#include <frugal/error.hpp>
#include <frugal/policy/kinds.hpp>

namespace frugal {

/// A dry run on the CPU before the run begins: two batches forward and backward, shapes and dtypes,
/// finite losses, gradients at every parameter, a checkpoint's round trip.
///
/// Lever   hours per run: a broken job fails in seconds, before a machine is rented.
/// Cost    two batches on the CPU when fit begins; nothing per step.
/// State   none; parameters, buffers, gradients, generator, device and the source's position are
///         restored, and the run that follows is the same as without it.
/// Errors  DryRunError, which lists the failed checks. `Trainer::dry_run(train)` does the same dry run
///         without a fit and returns true or false.
template <int Batches = 2>
struct DryRun {
  static_assert(Batches >= 1,
                "frugal: DryRun tries at least one batch. Write DryRun<2> or leave it out.");
  using kind = kinds::dry_run;
  using listens = list<on::fit_begin>;

  static constexpr About about{Term::hours_per_run, "some batches on the CPU when fit begins"};

  int batches = Batches;
  std::ostream* out = &std::cerr;  ///< destination of its lines; null for silence

  class State {
   public:
    using transient = void;

    explicit State(DryRun const& settings) : batches_(settings.batches), out_(settings.out) {}

    void on_fit_begin(FitBegin& phase) {
      auto const checks = phase.dry_run(detail::counted(batches_, "DryRun::batches"));
      if (out_) print(*out_, checks);
      if (all_passed(checks)) return;
      std::string failed;
      for (Check const& check : checks) {
        if (check.passed) continue;
        failed += (failed.empty() ? "" : "; ") + check.name + ": " + check.detail;
      }
      throw DryRunError({.what = "the dry run failed",
                         .where = "DryRun, before the first step",
                         .why = failed,
                         .fix = "Fix the checks that failed; nothing was trained or written."});
    }

   private:
    int batches_;
    std::ostream* out_;
  };
};

}  // namespace frugal
