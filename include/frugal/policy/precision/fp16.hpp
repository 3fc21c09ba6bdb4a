// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/base/number_text.hpp>
#include <frugal/core/compose/about.hpp>
#include <frugal/core/compose/composition.hpp>
#include <frugal/core/compose/policy.hpp>
#include <frugal/core/libtorch/autocast.hpp>
#include <frugal/core/run/phases.hpp>
#include <frugal/core/run/recipe_traits.hpp>
#include <frugal/core/run/seed_scale.hpp>
#include <frugal/core/run/services.hpp>
#include <frugal/core/run/settings.hpp>
#include <frugal/core/state/state_reader.hpp>
#include <frugal/policy/kinds.hpp>
#include <frugal/policy/precision/fp32.hpp>
#include <frugal/policy/precision/hardware.hpp>
#include <frugal/policy/skipped_windows.hpp>

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace frugal {

/// Settings of loss scaling in FP16; the defaults are PyTorch's.
struct LossScaling {
  double initial = 65536;               ///< scale of the first step
  double growth = 2;                    ///< factor after `growth_interval` consecutive good steps
  double backoff = 0.5;                 ///< factor after a step with an overflow
  std::int64_t growth_interval = 2000;  ///< steps
  std::uint64_t most_skips = 100;       ///< consecutive overflows after which the run fails
};

namespace detail {

/// The loss scale, on the gradients' device: no step waits to read it.
///
/// Gradients of FP16's backward pass underflow below 6e-8. So the loss is multiplied by the largest
/// power of two that causes no overflow, and the gradients are divided by it again. A window that
/// overflows anyway changes nothing but the scale.
///
/// Source  Micikevicius et al., "Mixed precision training" (2018), section 3.2; values as
///         torch.amp.GradScaler.
class LossScale {
 public:
  /// `by_operators`: use operators also in host memory, where plain numbers would do. A captured
  /// step needs this.
  explicit LossScale(LossScaling const& settings, bool by_operators = false)
      : settings_(settings), by_operators_(by_operators) {}

  void begin(c10::Device device);

  /// The scaled seed of a backward pass.
  at::Tensor scaled(at::Tensor const& seed) const { return seed * scaled_one(seed.scalar_type()); }
  /// The scaled seed for a seed of 1.
  at::Tensor scaled_one(at::ScalarType type) const {
    return type == at::kFloat ? scale_ : scale_.to(type);
  }

  /// Divides the gradients by the scale, and records whether any is not finite.
  void unscale(std::vector<at::Tensor> const& gradients);

  /// Replaces this process's flag by the result of `reduce`.
  template <class Reduce>
  void agree(Reduce&& reduce) {
    overflow_ = reduce(std::move(overflow_));
  }

  /// Computes the scale of the next window.
  void update();

  /// 1 if a gradient of this window is not finite.
  at::Tensor const& overflow() const { return overflow_; }
  /// Waits for the device.
  double value() const { return scale_.item<double>(); }
  std::uint64_t most_skips() const { return settings_.most_skips; }

  template <class Archive>
  void persist(Archive& archive) {
    double scale = Archive::loading ? 0 : value();
    std::int64_t good_steps = Archive::loading ? 0 : good_steps_.item<std::int64_t>();
    archive("scale", scale);
    archive("good_steps", good_steps);
    if (!Archive::loading) return;
    if (auto const device = destination(archive)) begin(*device);
    scale_.fill_(scale);
    good_steps_.fill_(good_steps);
  }

 private:
  /// Whether these are plain numbers in host memory, which need no operators.
  bool in_numbers() const { return !by_operators_ && scale_.is_cpu(); }

  at::Tensor inverse() const;

  void check() const;

  LossScaling settings_;
  at::Tensor scale_;       // float scalar
  at::Tensor good_steps_;  // int scalar: steps since the scale last changed
  at::Tensor overflow_;    // float scalar
  at::Tensor inverse_;     // float scalar, in host memory
  bool by_operators_;
};

}  // namespace detail

struct FP16 {
  static constexpr char const* name = "FP16";
};

/// Forward and backward in FP16 with loss scaling, so that small gradients do not underflow. FP16
/// always includes the scaling.
///
/// Lever   hours per run: on GPUs since 2017 whose matrix units support FP16 but not BF16.
/// Cost    the casts; per micro-batch a product with Accumulate, else nothing; per step one pass
///         over the gradients and a few scalars. No host sync: the host learns whether a step was
///         skipped two steps later on a device, at once on the CPU.
/// State   the scale, the steps since it last changed, the flags in flight to the host.
/// Errors  SettingsError for invalid scaling settings, for weights in FP16 and for weights on
///         several devices; GradientError after `most_skips` consecutive overflows.
/// Source  Micikevicius et al., "Mixed precision training" (2018); torch.amp.GradScaler.
///
/// A window in which a gradient or a loss overflows is no optimizer step: the weights, the
/// optimizer's state and count, the schedule and every cadence are unchanged; Counters::non_finite_windows
/// counts it. Such a loss is in no mean.
template <>
struct Precision<FP16> {
  using kind = kinds::precision;
  using listens =
      list<on::fit_begin, on::window, around::forward, on::loss, on::gradients, on::update>;

  static constexpr About about{Term::hours_per_run,
                               "casts of weights and activations, one pass over the gradients"};
  using properties =
      list<property::capturable, property::works_on_parts, property::skips_overflows>;

  LossScaling scaling{};

  static std::string caution(bool on_gpu) {
    if (on_gpu || detail::cpu_has_fp16()) return {};
    return "Precision<FP16> gains nothing on this CPU, which has no FP16 instructions; "
           "Precision<FP32> is faster on it";
  }

  static std::string_view format() { return FP16::name; }

  class State {
   public:
    State(Precision const& settings, RecipeFacts const& facts)
        : scale_(settings.scaling, facts.captures_steps),
          seed_is_one_(facts.batches == 1 && !facts.splits && !facts.shares) {}

    void on_fit_begin(FitBegin& phase) {
      c10::Device const device = phase.settings().device;
      require_weights(phase.parameters());
      // An evaluation may have nothing to train.
      std::vector<at::Tensor> const& weights = phase.parameters().tensors;
      scale_.begin(weights.empty() ? device : weights.front().device());
      phase.scale_losses_by([this] { return scale_.value(); });
      skipped_.begin(phase);
      detail::warn_on_device(phase, caution);
      std::string const on_gpu = detail::fp16_caution(detail::capability_of(device));
      if (!on_gpu.empty()) phase.warn(on_gpu);
    }

    template <class Next>
    Loss around_forward(Forward const& phase, Next&& next) {
      Loss loss = [&] {
        detail::AutocastGuard const guard(phase.device().type(), at::kHalf);
        at::Tensor const scale = scale_.scaled_one(at::kFloat);
        detail::SeedScale const known(scale);
        return next();
      }();
      // The scale is near the largest number of FP16.
      if (loss.value.defined() && loss.value.scalar_type() == at::kHalf) {
        loss.value = loss.value.to(at::kFloat);
      }
      return loss;
    }

    void on_window(WindowBegin const&) { skipped_.open(); }

    void on_loss(LossReady& phase) {
      phase.seed =
          seed_is_one_ ? scale_.scaled_one(phase.seed.scalar_type()) : scale_.scaled(phase.seed);
      skipped_.spoil(phase);
    }

    void on_gradients(Gradients& phase) {
      scale_.unscale(phase.gradients());
      scale_.agree(
          [&](at::Tensor found) { return phase.reduce(Quantity::overflow, std::move(found)); });
      phase.report_overflow(scale_.overflow());
      skipped_.close(scale_.overflow());
      phase.on_host([this](Gradients& now) { look_for_overflow(now); });
    }

    void on_update(Update&) { scale_.update(); }

    template <class Archive>
    void persist(Archive& archive) {
      scale_.persist(archive);
      skipped_.persist(archive);
    }

   private:
    static void require_weights(Parameters const& parameters) {
      for (std::size_t i = 0; i < parameters.size(); ++i) {
        at::Tensor const& weight = parameters.tensors[i];
        bool const half = weight.scalar_type() == at::kHalf;
        if (!half && weight.device() == parameters.tensors.front().device()) continue;
        throw SettingsError(
            {.what = "the parameter '" + parameters.names[i] + "' is " +
                     (half ? std::string("in FP16") : "on " + weight.device().str()),
             .where = "Precision<FP16>",
             .why = half ? "updates of FP16 weights are lost to rounding; only activations and "
                           "products may be FP16"
                         : "the gradients of a step share one scale, on one device",
             .fix = half ? "Call module->to(torch::kFloat) before the fit."
                         : "Put the module on one device."});
      }
    }

    void look_for_overflow(Gradients& phase) {
      bool const skips = skipped_.look(phase, scale_.overflow());
      if (!skips || skipped_.in_a_row() < scale_.most_skips()) return;
      skipped_.give_up(phase,
                       "the loss scale is down to " + detail::general(scale_.value(), 6) +
                           ", so the scale is not the cause",
                       "Check the data and the objective, lower the learning rate, or use "
                       "Precision<BF16>, which has a larger range.");
    }

    detail::LossScale scale_;
    bool seed_is_one_;  ///< backward passes start from 1, and not from a share of a window
    detail::SkippedWindows skipped_;
  };
};

}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/policy/precision/fp16.ipp>
#endif
