// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <frugal/core/compose/about.hpp>
#include <frugal/core/compose/diagnostic.hpp>
#include <frugal/core/compose/policy.hpp>
#include <frugal/core/libtorch/finite.hpp>
#include <frugal/core/run/phases.hpp>
#include <frugal/core/run/services.hpp>
#include <frugal/error.hpp>
#include <frugal/policy/kinds.hpp>
#include <frugal/policy/skipped_windows.hpp>

namespace frugal {

namespace detail {

FRUGAL_DIAGNOSTIC(
    skips_already,
    "frugal: Precision<FP16> skips windows whose gradients are not finite, because its "
    "loss scale depends on them. Remove SkipNonFinite; with Precision<FromEnv<...>> it "
    "may stay.");

/// Of no policy that always skips such windows itself.
struct SkipsNone {
  using sentence = skips_already;
  template <class P>
  static constexpr bool met = !has_property<property::skips_overflows, P>;
};

}  // namespace detail

/// Skips every window whose loss or gradients are NaN or infinite, in FP32 and BF16, as FP16's loss
/// scaling does: it is no optimizer step, and Counters::non_finite_windows counts it. If the window made
/// a buffer such as a running mean NaN or infinite, the buffers become those before it.
///
/// Lever   runs to convergence: one bad window costs its samples, and not the run.
/// Cost    one reading of the gradients per step; on a device also a scalar operator per
///         micro-batch and four per step. No host sync: on a device the host learns of a skip two
///         steps later, on the CPU at once. A copy of the floating-point buffers per window, if the
///         module has some; on a device seven operators more.
/// State   the skips in a row, the flags in flight to the host.
/// Errors  GradientError after `most_skips` skips in a row; SettingsError if that is 0, and for an
///         optimizer with a line search.
/// Source  torch.amp.GradScaler, which skips such steps with loss scaling alone.
struct SkipNonFinite {
  using kind = kinds::skip_non_finite;
  using listens = list<on::fit_begin, on::window, on::loss, on::gradients>;
  // It looks at gradients before they are clipped, and leaves them to FP16's own flag.
  using after = list<kinds::precision>;
  using demands = list<detail::SkipsNone>;

  static constexpr About about{Term::runs_to_convergence, "one reading of the gradients per step"};
  using properties = list<property::capturable, property::works_on_parts>;

  std::uint64_t most_skips = 100;  ///< windows in a row after which the run fails

  class State {
   public:
    explicit State(SkipNonFinite const& settings) : most_skips_(settings.most_skips) {}

    void on_fit_begin(FitBegin& phase) {
      if (most_skips_ == 0) {
        throw SettingsError({.what = "most_skips is 0",
                             .where = "SkipNonFinite",
                             .why = "it counts the windows that may be skipped in a row",
                             .fix = "Set 1 or more; 100 is the default."});
      }
      skipped_.begin(phase);
      // A process without a gradient in its first window has the others' device.
      c10::Device const device = phase.device();
      if (!device.is_cpu() && !found_.defined()) {
        found_ = at::zeros({}, at::TensorOptions().dtype(at::kFloat).device(device));
      }
    }

    void on_window(WindowBegin const&) { skipped_.open(); }
    void on_loss(LossReady& phase) { skipped_.spoil(phase); }

    void on_gradients(Gradients& phase) {
      at::Tensor const& others = phase.overflow();
      if (others.defined() && !others.is_same(found_)) {
        phase.warn(
            "SkipNonFinite does nothing: another policy, such as Precision<FP16>, skips windows "
            "whose gradients are not finite");
        return;
      }
      look_at(phase.gradients(), phase.facts().captures_steps);
      found_ = phase.reduce(Quantity::overflow, std::move(found_));
      phase.report_overflow(found_);
      skipped_.close(found_);
      phase.on_host([this](Gradients& now) { look(now); });
    }

    template <class Archive>
    void persist(Archive& archive) {
      skipped_.persist(archive);
    }

   private:
    void look_at(std::vector<at::Tensor> const& gradients, bool captures_steps) {
      at::NoGradGuard const no_gradients;
      auto const on_cpu = [](at::Tensor const& tensor) { return tensor.is_cpu(); };
      bool const on_host = std::all_of(gradients.begin(), gradients.end(), on_cpu) &&
                           (!gradients.empty() || !found_.defined() || on_cpu(found_));
      c10::Device const device =
          on_host || gradients.empty() ? c10::Device(at::kCPU) : gradients.front().device();
      // One tensor for all windows: a captured step writes to the one that it has seen.
      if (!found_.defined() || (!gradients.empty() && found_.device() != device)) {
        found_ = at::zeros({}, at::TensorOptions().dtype(at::kFloat).device(device));
      }
      if (captures_steps || !on_host) {
        found_.copy_(detail::non_finite_flag(gradients));
        return;
      }
      // In host memory the flag is a plain number.
      *found_.data_ptr<float>() = detail::first_non_finite(gradients) ? 1.0F : 0.0F;
    }

    void look(Gradients& phase) {
      if (!skipped_.look(phase, found_)) return;
      phase.warn(
          "SkipNonFinite has skipped windows whose loss or gradients are NaN or infinite; "
          "Report::non_finite_windows counts them");
      if (skipped_.in_a_row() < most_skips_) return;
      skipped_.give_up(
          phase, "the weights are those before the first of them, so these are not rare samples",
          "Check the data and the objective, lower the learning rate, add Schedule<Warmup<...>>, "
          "or "
          "raise SkipNonFinite::most_skips.");
    }

    std::uint64_t most_skips_;
    at::Tensor found_;  ///< a float scalar on the gradients' device: 1 if any is not finite
    detail::SkippedWindows skipped_;
  };
};

}  // namespace frugal
