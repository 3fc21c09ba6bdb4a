// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>

#include <vector>

#include <frugal/core/compose/about.hpp>
#include <frugal/core/compose/policy.hpp>
#include <frugal/core/compose/rational.hpp>
#include <frugal/core/run/phases.hpp>
#include <frugal/policy/kinds.hpp>

namespace frugal {

namespace detail {

inline constexpr double tiny_norm = 1e-6;  // as in PyTorch: a zero norm must not divide by zero

void require_norm_limit(double limit);

bool all_on_host(std::vector<at::Tensor> const& norms);

// The squares of finite numbers may overflow.
double norm_in_double(at::Tensor const& gradient);

// Scalars in host memory are plain numbers: no operator sums them.
double norm_on_host(std::vector<at::Tensor> const& gradients, std::vector<at::Tensor> const& norms);

// Gradients below the limit are not touched.
void clip_on_host(std::vector<at::Tensor> const& gradients, double norm, double limit);

// The factor stays on the gradients' device: no host sync.
at::Tensor clip_on_device(std::vector<at::Tensor> const& gradients, std::vector<at::Tensor>& norms,
                          double limit);

}  // namespace detail

/// Clips the total norm of a step's gradients.
///
/// Lever   runs to convergence: a step on an outlier no longer ruins the run.
/// Cost    one norm over the gradients per step, and one multiplication (on the CPU only above the
///         limit); no host sync, because the factor stays on the device
///         (torch::nn::utils::clip_grad_norm_ reads it back).
/// State   none. Log writes the norm before clipping as "gradient_norm".
/// Errors  a limit that is not positive does not compile, or throws SettingsError if it is given at
///         run time; NonFiniteGradientError for a norm that is NaN or infinite, unless a policy
///         skips the window (SkipNonFinite, FP16): in host memory before the update, on a device
///         when losses are read.
/// Source  Pascanu et al., "On the difficulty of training recurrent neural networks" (2013); values
///         as torch.nn.utils.clip_grad_norm_(norm_type=2).
template <Rational Limit = 1.0_r>
struct ClipNorm {
  static_assert(Limit.value() > 0,
                "frugal: ClipNorm needs a positive norm. Write ClipNorm<1.0_r>, or leave it out.");
  using kind = kinds::clip;
  using listens = list<on::fit_begin, on::gradients>;

  static constexpr About about{Term::runs_to_convergence,
                               "one norm and one product over the gradients per step"};
  static constexpr bool capturable = true;
  static constexpr bool works_on_parts = true;

  double max_norm = Limit.value();  ///< largest L2 norm of all gradients together

  class State {
   public:
    // The norm is recomputed at every step, so nothing needs saving.
    using transient = void;

    explicit State(ClipNorm const& settings) : max_norm_(settings.max_norm) {}

    void on_fit_begin(FitBegin& phase) {
      detail::require_norm_limit(max_norm_);
      phase.compare_in_processes("ClipNorm::max_norm", max_norm_);
    }

    void on_gradients(Gradients& phase) {
      auto const& gradients = phase.gradients();
      // Of processes with different layers others may have some, and ask for this one's norms.
      if (gradients.empty() && !phase.facts().divides) return;
      std::vector<at::Tensor> norms = phase.norms();
      // In a captured graph a host number would stay constant.
      if (!phase.facts().captures_steps && detail::all_on_host(norms)) {
        double const norm = phase.facts().divides
                                ? at::linalg_vector_norm(norms.front()).item<double>()
                                : detail::norm_on_host(gradients, norms);
        phase.report_norm(norm);  // throws before a gradient is changed
        detail::clip_on_host(gradients, norm, max_norm_);
      } else {
        phase.report_norm(detail::clip_on_device(gradients, norms, max_norm_));
      }
    }

   private:
    double max_norm_;
  };
};

/// Does not change gradients: the null policy of the clip slot.
struct NoClip {
  using kind = kinds::clip;
  using listens = list<>;
};

template <>
struct null_policy<kinds::clip> {
  using type = NoClip;
};

}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/policy/clip/norm.ipp>
#endif
