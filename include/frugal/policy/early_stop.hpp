// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/core/compose/about.hpp>
#include <frugal/core/compose/policy.hpp>
#include <frugal/core/compose/watching.hpp>
#include <frugal/core/run/counters.hpp>
#include <frugal/core/run/phases.hpp>
#include <frugal/core/run/run_limits.hpp>
#include <frugal/core/run/run_snapshot.hpp>
#include <frugal/core/state/cut_tensors.hpp>
#include <frugal/core/state/module_tensors.hpp>
#include <frugal/core/state/state_reader.hpp>
#include <frugal/policy/finite_state.hpp>
#include <frugal/policy/kinds.hpp>
#include <frugal/policy/options.hpp>
#include <frugal/policy/watched.hpp>

#include <ATen/ATen.h>
#include <torch/nn/module.h>

#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

namespace frugal {
struct RunState;
}  // namespace frugal

namespace frugal::detail {

/// The weights of the best validation so far, parameters and buffers, in host memory.
class BestWeights {
 public:
  /// Of a run whose processes have parts of the weights.
  [[noreturn]] static void refuse_parts();

  bool empty() const { return empty_; }
  /// The watched metric of that validation.
  double value() const { return value_; }

  /// Copies the module's tensors. A second call reuses the memory.
  void take(RunState& run, double value);

  /// They were the best on other validation data.
  void forget() { empty_ = true; }

  /// Restores them into the module, on its current device; the report names their step.
  void restore(RunState& run);

  /// By the names of parameters and buffers, in a scope that a recipe may lack. Not in a snapshot:
  /// after a Rollback the best validation is still the best. Not moved to another device: the copy
  /// stays in host memory.
  template <class Archive>
  void persist(Archive& archive, torch::nn::Module& module) {
    if (archive.of_a_snapshot) return;
    if constexpr (Archive::loading) {
      if (!archive.has("best_weights")) return;
      empty_ = false;
    } else {
      if (empty_) return;
    }
    archive.scope("best_weights", [&](auto& inner) {
      bool dispensable = true;
      inner("dispensable", dispensable);
      inner("value", value_);
      inner("step", step_);
      inner.scope("tensors", [&](auto& tensors) {
        visit_tensors(module, [&](std::string const& name, at::Tensor const& tensor) {
          at::Tensor& kept = kept_.module.tensors[name];
          auto const part = part_of(tensor);
          if (!part) return tensors(name, kept);
          // A part lies in memory as its tensor does.
          at::Tensor own = at::empty_like(tensor.detach(), at::TensorOptions().device(at::kCPU),
                                          at::MemoryFormat::Preserve);
          if (kept.defined()) own.copy_(kept);
          tensors.part(name, own, *part);
          kept = own;
        });
      });
    });
  }

 private:
  RunSnapshot kept_;
  double value_ = 0;
  std::uint64_t step_ = 0;
  bool empty_ = true;
};

/// SettingsError if validations are watched before all data is drawn.
void require_grace(int grace, std::uint64_t easy_epochs);

/// What a run of this length does not come to; empty if there is nothing to say.
std::string grace_outlook(int grace, RunLimits const& horizon);

/// SettingsError for numbers that are out of range.
void require_early_stop(int patience, int grace, double min_delta);

void warn_of_no_best(FitRun& phase, int grace);

}  // namespace frugal::detail

namespace frugal {

/// Ends a run whose watched metric has stopped improving. On request it restores the weights of the
/// best validation.
///
/// Lever   runs to convergence.
/// Cost    one comparison per validation, nothing per step, no host sync. restore_best: at each
///         improvement a check that the weights are finite and a copy of them to host memory, which
///         every checkpoint stores too.
/// State   best value and validations since, and with restore_best the best weights; they survive a
///         resume.
/// Errors  a watched metric that the recipe does not measure does not compile; one that a policy
///         of around::validate fails to add is a MetricError. SettingsError for a
///         negative min_delta. A NaN is never better, and uses up patience.
/// Source  patience form of Prechelt, "Early stopping - but when?" (1998); stops where
///         keras.callbacks.EarlyStopping does, and restores what its restore_best_weights does.
///
/// Options, in any order: Patience<3>, the watched metric, WatchLoss, and GraceEpochs<N>.
template <class... Options>
struct EarlyStop {
 private:
  using classes =
      list<detail::option::patience, detail::option::watch, detail::option::grace_epochs>;
  static_assert(
      detail::options_known<classes, Options...>,
      "frugal: EarlyStop<...>: unknown option. Options: Patience<validations>, "
      "GraceEpochs<epochs>, and a watched metric such as WatchLoss or WatchAccuracy. Of a "
      "metric of Validate, such as F1Score<Macro>, write its name: Watch<\"f1_macro\", "
      "Better::higher>.");
  static_assert(
      detail::options_unique<classes, Options...>,
      "frugal: EarlyStop<...>: the same option twice. Keep one Patience<validations>, one "
      "GraceEpochs<epochs> and one watched metric.");
  using Limit = detail::option_of<detail::option::patience, Patience<3>, Options...>;
  using Metric = detail::option_of<detail::option::watch, WatchLoss, Options...>;
  struct NoGrace {
    static constexpr int grace_epochs = 0;
  };
  using GracePeriod = detail::option_of<detail::option::grace_epochs, NoGrace, Options...>;

 public:
  using kind = kinds::early_stop;
  using listens = list<around::fit, on::fit_begin, on::ready, around::validate, on::validated>;
  using needs = list<kinds::validate>;
  using after = list<kinds::validate>;

  FRUGAL_DIAGNOSTIC(without_validation,
                    "frugal: EarlyStop watches validation, and fit(train) has no validation data. "
                    "Call fit(train, valid).");
  using watches_validation = without_validation;
  FRUGAL_DIAGNOSTIC(
      without_metric,
      "frugal: EarlyStop watches a metric that this recipe does not measure; the compiler's note "
      "names it. Add the "
      "metric to Validate, as in Validate<Accuracy>, or watch the loss with WatchLoss.");
  using watches = list<watched<Metric, without_metric>>;

  static constexpr About about{Term::runs_to_convergence, "one comparison per validation"};
  using properties = list<property::adds_no_metrics>;

  int patience = Limit::validations;             ///< validations without improvement
  int grace_epochs = GracePeriod::grace_epochs;  ///< whose validations are not watched
  double min_delta = 0.0;  ///< a change must be larger than this, in the metric's unit
  /// At the end of the run, for whatever reason it ends, the module gets the weights of the best
  /// validation. Not after a preemption: the run will be resumed.
  bool restore_best = false;

  /// What a run of this length does not come to; empty if there is nothing to say.
  std::string outlook(RunLimits const& horizon) const {
    return detail::grace_outlook(grace_epochs, horizon);
  }

  class State {
   public:
    explicit State(EarlyStop const& settings)
        : settings_(settings), min_delta_(settings.min_delta), restores_(settings.restore_best) {}

    /// After the last save, so that a finished run with more epochs continues from the trained
    /// weights.
    template <class Next>
    void around_fit(FitRun& phase, Next&& next) {
      run_ = &phase.run_state();
      module_ = &phase.module();
      if (restores_) finite_.begin(*module_);
      next();
      if (!restores_ || phase.preempted()) return;
      if (best_weights_.empty()) {
        return detail::warn_of_no_best(phase, settings_.grace_epochs);
      }
      if (lacks_) {
        phase.warn(
            "EarlyStop: the checkpoint has no weights of the best validation before it, so the "
            "best of those after it are restored");
      }
      best_weights_.restore(*run_);
    }

    void on_fit_begin(FitBegin& phase) {
      std::string const text = settings_.outlook(phase.horizon());
      if (!text.empty()) phase.warn_of_plan("EarlyStop: " + text);
      if (restores_ && phase.has_held_parts()) detail::BestWeights::refuse_parts();
      detail::require_early_stop(settings_.patience, settings_.grace_epochs, min_delta_);
    }

    /// A run that it has stopped trains on with more patience.
    void on_ready(Ready& phase) const {
      detail::require_grace(settings_.grace_epochs, phase.easy_epochs());
      if (phase.stopped_by(kind::name) && !forgot_ && since_ < settings_.patience) {
        phase.withdraw_stop();
      }
    }

    /// Inside of Average: the module holds the validated weights, trained or averaged.
    template <class Next>
    Metrics around_validate(ValidationRun const& phase, Next&& next) {
      Metrics measured = next();
      if (!restores_ || in_grace(phase.counters())) return measured;
      double const value = measured[Metric::name];
      bool const first = best_weights_.empty() && !std::isnan(value);
      if (first || Metric::improves(value, best_weights_.value(), min_delta_)) {
        take_best(phase, value);
      }
      return measured;
    }

    /// Called once per validation, after every metric of it is final.
    flow on_validated(Validated& phase) {
      if (in_grace(phase.counters())) return flow::proceed;
      double const value = phase.metrics[Metric::name];
      if (!std::isnan(value) && (!best_ || Metric::improves(value, *best_, min_delta_))) {
        best_ = value;
        since_ = 0;
        return flow::proceed;
      }
      return ++since_ < settings_.patience ? flow::proceed : flow::stop;
    }

    template <class Archive>
    void persist(Archive& archive) {
      archive("best", best_);
      archive("since", since_);
      bool const forgets = forgets_best(archive, "EarlyStop", Metric::name);
      if (forgets) {
        forgot_ = true;
        best_.reset();
        since_ = 0;
      }
      if (!restores_ || run_ == nullptr) return;
      best_weights_.persist(archive, *module_);
      if (forgets) best_weights_.forget();
      if (Archive::loading && best_ && best_weights_.empty()) lacks_ = true;
    }

   private:
    /// Weights that are not finite are no best ones: a metric may not read all of them.
    void take_best(ValidationRun const& phase, double value) {
      auto const bad = finite_.first_bad_weight(phase.module());
      // Where processes have different layers, those of another one count as well.
      double const bad_here = bad ? 1.0 : 0.0;
      if ((phase.places().empty() ? bad_here : phase.reduce(Quantity::overflow, bad_here)) == 0) {
        return best_weights_.take(*run_, value);
      }
      if (std::exchange(has_advised_, true)) return;
      phase.warn("EarlyStop: the weights of the best validation at step " +
                 std::to_string(phase.counters().step) + " are not finite (" +
                 (bad ? "tensor '" + *bad + "'" : "in another process") +
                 "), so they are not kept for restore_best");
    }

    /// As Keras counts for start_from_epoch: the validation at the end of an epoch belongs to it.
    bool in_grace(Counters const& at) const {
      std::uint64_t const epoch = at.position == 0 && at.epoch > 0 ? at.epoch - 1 : at.epoch;
      return epoch < static_cast<std::uint64_t>(settings_.grace_epochs);
    }

    EarlyStop settings_;
    double min_delta_;
    bool restores_;
    std::optional<double> best_;
    int since_ = 0;
    bool forgot_ = false;  ///< the resumed run has other validation data
    detail::BestWeights best_weights_;
    detail::FiniteState finite_;
    bool has_advised_ = false;
    RunState* run_ = nullptr;
    torch::nn::Module* module_ = nullptr;
    bool lacks_ = false;  ///< the run resumed from a checkpoint made without restore_best
  };
};

}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/policy/early_stop.ipp>
#endif
