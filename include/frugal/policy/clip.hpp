// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/base/number_text.hpp>
#include <frugal/core/compose/about.hpp>
#include <frugal/core/compose/policy.hpp>
#include <frugal/core/compose/rational.hpp>
#include <frugal/core/libtorch/parameters.hpp>
#include <frugal/core/run/phases.hpp>
#include <frugal/error.hpp>
#include <frugal/policy/kinds.hpp>

#include <ATen/ATen.h>
#include <ATen/core/DimVector.h>

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

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
template <Rational Limit = 1.0>
struct ClipNorm {
  static_assert(Limit.value() > 0,
                "frugal: ClipNorm needs a positive norm. Write ClipNorm<1.0>, or leave it out.");
  using kind = kinds::clip;
  using listens = list<on::fit_begin, on::gradients>;

  static constexpr About about{Term::runs_to_convergence,
                               "one norm and one product over the gradients per step"};
  using properties = list<property::capturable, property::works_on_parts>;

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

/// Clamps every gradient element to the range from -max_value to max_value.
///
/// Lever   runs to convergence: a step on an outlier no longer ruins the run.
/// Cost    two passes over the gradients per step, each one grouped call; no host sync.
/// State   none.
/// Errors  a limit that is not positive does not compile, or throws SettingsError if it is given at
///         run time.
/// Source  torch.nn.utils.clip_grad_value_.
template <Rational Limit = 1.0>
struct ClipValue {
  static_assert(Limit.value() > 0,
                "frugal: ClipValue needs a positive limit. Write ClipValue<1.0>, or leave it "
                "out.");
  using kind = kinds::clip;
  using listens = list<on::fit_begin, on::gradients>;

  static constexpr About about{Term::runs_to_convergence, "two passes over the gradients per step"};
  using properties = list<property::capturable, property::works_on_parts>;

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

namespace detail {

/// L2 norms over the inputs of each output unit: over the rows of a matrix, the filters of a
/// convolution, all of a scalar or vector. Shape [N, 1, ...] or [].
at::Tensor unit_norms(at::Tensor const& tensor);

}  // namespace detail

/// Limits the gradient of each output unit to a fraction of the norm of that unit's weights.
///
/// Lever   runs to convergence: large batches and high rates without batch normalization.
/// Cost    seven operators per parameter and step; no host sync.
/// State   none.
/// Errors  a fraction that is not positive does not compile, or throws SettingsError if it is given
///         at run time; SettingsError for `skips` that selects every parameter.
/// Source  Brock et al., "High-performance large-scale image recognition without normalization"
///         (2021), section 4.1.
template <Rational Share = 0.01>
struct ClipAdaptive {
  static_assert(Share.value() > 0,
                "frugal: ClipAdaptive needs a positive share. Write ClipAdaptive<0.01>, or leave "
                "it out.");
  using kind = kinds::clip;
  using listens = list<on::fit_begin, on::gradients>;

  static constexpr About about{Term::runs_to_convergence, "seven operators per parameter and step"};
  using properties = list<property::capturable>;

  double share = Share.value();  ///< largest ratio of a unit's gradient norm to its weight norm
  double least = 1e-3;           ///< lower bound of the weight norm, mainly for newly initialised
                                 ///< weights
  /// Parameters that are not clipped. The paper excludes the last layer.
  std::function<bool(std::string_view name, at::Tensor const& parameter)> skips{};

  class State {
   public:
    using transient = void;  // recomputed from the parameters' names when fit begins

    explicit State(ClipAdaptive const& settings) : settings_(settings) {}

    void on_fit_begin(FitBegin& phase) {
      require_positive("share", settings_.share, "0.01");
      require_positive("least", settings_.least, "0.001");
      clipped_.clear();
      Parameters const& all = phase.parameters();
      for (std::size_t i = 0; i < all.size(); ++i) {
        if (settings_.skips && settings_.skips(all.names[i], all.tensors[i])) continue;
        clipped_.push_back(all.tensors[i]);
      }
      if (!clipped_.empty()) return;
      throw SettingsError(
          {.what = "ClipAdaptive clips no parameter",
           .where = "ClipAdaptive::skips",
           .why = "it skips every parameter",
           .fix = "Return true for the last layer only, or leave ClipAdaptive out."});
    }

    void on_gradients(Gradients&) {
      at::NoGradGuard const no_gradients;
      for (at::Tensor const& parameter : clipped_) {
        at::Tensor const& gradient = parameter.grad();
        if (!gradient.defined()) continue;
        at::Tensor const limit =
            detail::unit_norms(parameter).clamp_min_(settings_.least).mul_(settings_.share);
        // Both norms stay on their device. A NaN stays NaN, whatever the limit.
        at::Tensor const norm = detail::unit_norms(gradient).clamp_min_(tiny);
        gradient.mul_(limit.div_(norm).clamp_max_(1.0));
      }
    }

   private:
    static void require_positive(char const* name, double value, char const* usual) {
      if (value > 0) return;
      throw SettingsError({.what = std::string(name) + " is " + detail::general(value, 6),
                           .where = std::string("ClipAdaptive::") + name,
                           .why = "gradients are limited to a multiple of it",
                           .fix = std::string("Give a number above 0, such as ") + usual + "."});
    }

    static constexpr double tiny = 1e-6;

    ClipAdaptive settings_;
    std::vector<at::Tensor> clipped_;
  };
};

}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/policy/clip.ipp>
#endif
