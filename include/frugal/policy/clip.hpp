// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>

#include <frugal/compose/about.hpp>
#include <frugal/compose/policy.hpp>
#include <frugal/compose/rational.hpp>
#include <frugal/loop/phase.hpp>
#include <frugal/policy/kinds.hpp>

namespace frugal {

/// Leaves gradients as they are: what fills the clip slot when nothing else does.
struct NoClip {
  using kind = kinds::clip;
  using listens = list<>;
};

template <>
struct null_policy<kinds::clip> {
  using type = NoClip;
};

/// Scales the gradients of a step down to a total norm, if they are above it.
///
/// Lever   runs to convergence: a step on an outlier no longer ruins the run.
/// Cost    one norm and one multiplication over the gradients per step; no host sync, since
///         the factor stays on the device (torch::nn::utils::clip_grad_norm_ reads it back).
/// State   none. `norm()` is the last norm before clipping, for logs at their cadence.
/// Errors  a limit that is not positive does not compile, or throws SettingsError if it is
///         given at run time.
/// Source  Pascanu et al., "On the difficulty of training recurrent neural networks" (2013);
///         values as torch.nn.utils.clip_grad_norm_(norm_type=2).
template <Rational Limit = 1.0_r>
struct ClipNorm {
  static_assert(Limit.value() > 0,
                "frugal: ClipNorm needs a positive norm. Write ClipNorm<1.0_r>, or leave it out.");
  using kind = kinds::clip;
  using listens = list<on::fit_begin, on::gradients>;

  static constexpr About about{Term::runs_to_convergence,
                               "one norm and one product over the gradients per step"};

  double max_norm = Limit.value();  ///< largest L2 norm of all gradients together

  template <class Context>
  class State {
   public:
    // The norm is recomputed at every step; a resumed run needs nothing of the last one.
    using transient = void;

    explicit State(ClipNorm const& settings) : max_norm_(settings.max_norm) {}

    void on_fit_begin(FitBegin<Context>&) {
      if (!(max_norm_ > 0)) {
        throw SettingsError({.what = "ClipNorm has a limit of " + std::to_string(max_norm_),
                             .where = "ClipNorm::max_norm",
                             .why = "a norm to clip to is positive",
                             .mend = "Set max_norm above 0, or leave ClipNorm out."});
      }
    }

    void on_gradients(Gradients<Context>& phase) {
      auto const& gradients = phase.gradients();
      if (gradients.empty()) return;
      // 1e-6 as in PyTorch: a zero gradient must not divide by zero.
      norm_ = at::linalg_vector_norm(at::stack(at::_foreach_norm(gradients, 2)), 2);
      at::Tensor const factor = at::reciprocal(norm_ + 1e-6).mul_(max_norm_).clamp_max_(1.0);
      at::_foreach_mul_(gradients, factor);
    }

    /// The total norm before clipping, a scalar on the gradients' device.
    at::Tensor const& norm() const { return norm_; }

   private:
    double max_norm_;
    at::Tensor norm_;
  };
};

}  // namespace frugal
