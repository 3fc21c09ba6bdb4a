// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>
#include <ATen/core/DimVector.h>

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <frugal/base/number_text.hpp>
#include <frugal/core/compose/about.hpp>
#include <frugal/core/compose/policy.hpp>
#include <frugal/core/compose/rational.hpp>
#include <frugal/core/libtorch/parameters.hpp>
#include <frugal/core/run/phases.hpp>
#include <frugal/error.hpp>
#include <frugal/policy/kinds.hpp>

namespace frugal {

namespace detail {

/// L2 norms over the inputs of each output unit: over the rows of a matrix, the filters of a
/// convolution, all of a scalar or vector. Shape [N, 1, ...] or [].
at::Tensor unit_norms(at::Tensor const& tensor);

}  // namespace detail

/// Limits the gradient of each output unit to a fraction of the norm of that unit's weights.
///
/// Lever   runs to convergence: large batches and high rates without batch normalisation.
/// Cost    seven operators per parameter and step; no host sync.
/// State   none.
/// Errors  a fraction that is not positive does not compile, or throws SettingsError if it is given
///         at run time; SettingsError for `skips` that selects every parameter.
/// Source  Brock et al., "High-performance large-scale image recognition without normalization"
///         (2021), section 4.1.
template <Rational Share = 0.01_r>
struct ClipAdaptive {
  static_assert(Share.value() > 0,
                "frugal: ClipAdaptive needs a positive share. Write ClipAdaptive<0.01_r>, or leave "
                "it out.");
  using kind = kinds::clip;
  using listens = list<on::fit_begin, on::gradients>;

  static constexpr About about{Term::runs_to_convergence, "seven operators per parameter and step"};
  static constexpr bool capturable = true;

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
#include <frugal/policy/clip/adaptive.ipp>
#endif
