// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>

#include <string>

#include <frugal/base/number_text.hpp>
#include <frugal/core/compose/about.hpp>
#include <frugal/core/compose/policy.hpp>
#include <frugal/core/compose/rational.hpp>
#include <frugal/core/run/phases.hpp>
#include <frugal/error.hpp>
#include <frugal/policy/kinds.hpp>

namespace frugal {

/// Clamps every gradient element to the range from -max_value to max_value.
///
/// Lever   runs to convergence: a step on an outlier no longer ruins the run.
/// Cost    two passes over the gradients per step, each one grouped call; no host sync.
/// State   none.
/// Errors  a limit that is not positive does not compile, or throws SettingsError if it is given at
///         run time.
/// Source  torch.nn.utils.clip_grad_value_.
template <Rational Limit = 1.0_r>
struct ClipValue {
  static_assert(Limit.value() > 0,
                "frugal: ClipValue needs a positive limit. Write ClipValue<1.0_r>, or leave it "
                "out.");
  using kind = kinds::clip;
  using listens = list<on::fit_begin, on::gradients>;

  static constexpr About about{Term::runs_to_convergence, "two passes over the gradients per step"};
  static constexpr bool capturable = true;
  static constexpr bool works_on_parts = true;

  double max_value = Limit.value();  ///< largest absolute value of an element

  class State {
   public:
    using transient = void;  // no state between steps

    explicit State(ClipValue const& settings) : max_value_(settings.max_value) {}

    void on_fit_begin(FitBegin& phase) {
      phase.compare_in_processes("ClipValue::max_value", max_value_);
      if (max_value_ > 0) return;
      throw SettingsError({.what = "ClipValue has a limit of " + detail::general(max_value_, 6),
                           .where = "ClipValue::max_value",
                           .why = "a value to clip to is positive",
                           .fix = "Set max_value above 0, or leave ClipValue out."});
    }

    void on_gradients(Gradients& phase) {
      if (phase.gradients().empty()) return;
      at::_foreach_clamp_min_(phase.gradients(), -max_value_);
      at::_foreach_clamp_max_(phase.gradients(), max_value_);
    }

   private:
    double max_value_;
  };
};

}  // namespace frugal
