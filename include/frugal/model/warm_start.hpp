// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/core/TensorImpl.h>
#include <c10/core/UndefinedTensorImpl.h>
#include <c10/util/intrusive_ptr.h>
#include <torch/nn/module.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <utility>

#include <frugal/core/compose/about.hpp>
#include <frugal/core/compose/composition.hpp>
#include <frugal/core/compose/list.hpp>
#include <frugal/core/compose/outcome.hpp>
#include <frugal/core/compose/policy.hpp>
#include <frugal/core/libtorch/parameters.hpp>
#include <frugal/core/run/adapt.hpp>
#include <frugal/core/run/phases.hpp>
#include <frugal/core/run/settings.hpp>
#include <frugal/error.hpp>
#include <frugal/model/load_weights.hpp>
#include <frugal/policy/kinds.hpp>

namespace frugal::kinds {

struct warm_start : optional_kind {
  static constexpr std::string_view name = "WarmStart";
  static constexpr std::string_view page = "model/load_weights.md";
  static constexpr Stage stage = Stage::enclose;  // before those that adapt the module
  using properties = list<property::knows_ranks>;
};

}  // namespace frugal::kinds

namespace frugal {

namespace detail {

/// What WarmStart has loaded, and into which tensors.
class WarmStarted {
 public:
  WarmStarted(LoadedWeights weights, torch::nn::Module& module);
  LoadedWeights const& weights() const { return weights_; }

  /// True at the first call: of several fits, the first logs them.
  bool announce() const { return !std::exchange(announced_, true); }

  /// Whether the module has one of these tensors: later adaptations may have replaced others.
  bool is_in(torch::nn::Module& module) const;

 private:
  // Weak references keep an address from being used again.
  using Weak = c10::weak_intrusive_ptr<c10::TensorImpl, c10::UndefinedTensorImpl>;

  LoadedWeights weights_;
  mutable bool announced_ = false;
  std::map<c10::TensorImpl const*, Weak> into_;
};

/// Whether a policy adapts the module, or derives something from its weights, before the run may be
/// resumed.
template <class P>
inline constexpr bool needs_weights =
    (AdaptsModule<P> || contains<on::module, typename P::listens>) &&
    !contains<typename P::kind, list<kinds::start_on, kinds::execution, kinds::warm_start>>;

template <class Policies>
inline constexpr bool any_needs_weights = false;
template <class... Ps>
inline constexpr bool any_needs_weights<list<Ps...>> = (false || ... || needs_weights<Ps>);

/// Whether a folder has a checkpoint from which a run may be resumed.
bool has_checkpoint(std::filesystem::path const& run_dir);

}  // namespace detail

/// A new run begins with the weights of a file: fine-tuning.
///
/// Lever   runs to convergence: pretrained weights need a fraction of the steps.
/// Cost    once the reading of the file; memory for one tensor. No cost in a step.
/// State   none: a resumed run has its own weights, and does not need the file. But the file is read
///         if another policy of the recipe adapts the module (Lora, Freeze): what that keeps fixed is
///         in no checkpoint.
/// Errors  those of load_weights(), before the first step.
///
/// The weights are loaded before other policies see the module, by whatever uses it first: a fit, an
/// evaluation, a dry run. Each module is loaded once: a further fit continues with what it has.
struct WarmStart {
  using kind = kinds::warm_start;
  using listens = list<on::fit_begin, on::recorded>;
  using properties = list<property::adapts>;

  static constexpr About about{Term::runs_to_convergence, "once the reading of the weights"};

  std::filesystem::path from{};  ///< as the path of load_weights()
  WeightRules rules{};
  Outcome<detail::WarmStarted> loaded{};  ///< set by fit

  /// What was loaded. StateError if nothing was: there was no fit yet, or it was resumed.
  LoadedWeights const& weights() const {
    if (detail::WarmStarted const* const found = loaded.get()) return found->weights();
    throw StateError({.what = "no weights were loaded",
                      .where = "WarmStart::weights",
                      .why = "no fit has begun, or it was resumed from a checkpoint",
                      .fix = "Call fit first, in a new Settings::run_dir."});
  }

  /// Loads the weights, unless this module has them.
  void adapt(torch::nn::Module& module) const;
  bool is_in(torch::nn::Module& module) const {
    return loaded.get() != nullptr && loaded.get()->is_in(module);
  }
  /// Whether a fit may be resumed, and nothing needs the weights before that is known.
  template <class Policies>
  bool postpones(Settings const& settings) const {
    if constexpr (detail::has<kinds::checkpoint, Policies> &&
                  !detail::any_needs_weights<Policies>) {
      return !from.empty() && detail::has_checkpoint(settings.run_dir);
    } else {
      return false;
    }
  }

  class State;
};

class WarmStart::State {
 public:
  using transient = void;

  explicit State(WarmStart const& settings) : settings_(&settings) {}

  void on_fit_begin(FitBegin& phase) {
    // Also if they were postponed: the checkpoints may all be damaged, or Checkpoint may not resume.
    phase.when_restored([this, phase]() mutable {
      if (phase.resumed_from() || replaced_) return;
      settings_->adapt(base_module(phase.module()));
      detail::WarmStarted const& found = *settings_->loaded.get();
      if (!found.announce()) return;
      phase.record({"weights",
                    {{"from", found.weights().file.string()},
                     {"tensors", static_cast<std::uint64_t>(found.weights().matched.size())}}});
    });
  }

  /// Checkpoint has taken weights of its own choice (Resume::Weights).
  void on_recorded(Recorded& phase) {
    if (phase.event.name == "weights") replaced_ = true;
  }

 private:
  WarmStart const* settings_;
  bool replaced_ = false;
};

}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/model/warm_start.ipp>
#endif
