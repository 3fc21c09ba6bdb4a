// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/core/TensorImpl.h>
#include <c10/core/UndefinedTensorImpl.h>
#include <c10/util/intrusive_ptr.h>
#include <torch/nn/module.h>

#include <concepts>
#include <cstddef>
#include <filesystem>
#include <map>
#include <string>
#include <utility>

#include <frugal/checkpoint/run_directory.hpp>
#include <frugal/core/compose/about.hpp>
#include <frugal/core/compose/composition.hpp>
#include <frugal/core/compose/list.hpp>
#include <frugal/core/compose/outcome.hpp>
#include <frugal/core/compose/policy.hpp>
#include <frugal/core/libtorch/parameters.hpp>
#include <frugal/core/run/phases.hpp>
#include <frugal/core/state/module_tensors.hpp>
#include <frugal/error.hpp>
#include <frugal/inline.hpp>
#include <frugal/model/load_weights.hpp>
#include <frugal/model/weight_rules.hpp>
#include <frugal/policy/kinds.hpp>

namespace frugal {

namespace detail {

/// What WarmStart has loaded, and into which tensors.
class WarmStarted {
 public:
  FRUGAL_INLINE WarmStarted(LoadedWeights weights, torch::nn::Module& module)
      : weights_(std::move(weights)) {
    visit_all_tensors(module, [&](std::string const&, at::Tensor const& tensor) {
      into_.emplace(tensor.unsafeGetTensorImpl(), Weak(tensor.getIntrusivePtr()));
    });
  }
  LoadedWeights const& weights() const { return weights_; }

  /// Whether the module has one of these tensors: later adaptations may have replaced others.
  FRUGAL_INLINE bool is_in(torch::nn::Module& module) const {
    bool found = false;
    visit_all_tensors(module, [&](std::string const&, at::Tensor const& tensor) {
      found |= into_.contains(tensor.unsafeGetTensorImpl());
    });
    return found;
  }

 private:
  // Weak references keep an address from being used again.
  using Weak = c10::weak_intrusive_ptr<c10::TensorImpl, c10::UndefinedTensorImpl>;

  LoadedWeights weights_;
  std::map<c10::TensorImpl const*, Weak> into_;
};

/// Whether a policy replaces layers of the module, or derives something from its weights, before the
/// run may be resumed.
template <class P>
inline constexpr bool adapts_module =
    contains<on::module, typename P::listens> &&
    !contains<typename P::kind, list<kinds::start_on, kinds::execution, kinds::warm_start>>;

template <class Policies>
inline constexpr bool any_adapts_module = false;
template <class... Ps>
inline constexpr bool any_adapts_module<list<Ps...>> = (false || ... || adapts_module<Ps>);

/// Whether a folder has a checkpoint from which a run may be resumed.
FRUGAL_INLINE bool has_checkpoint(std::filesystem::path const& run_dir) {
  std::error_code ignored;
  return !run_dir.empty() && std::filesystem::is_directory(run_dir, ignored) &&
         !RunDirectory(run_dir, Access::read).list().whole.empty();
}

}  // namespace detail

/// A new run begins with the weights of a file: fine-tuning.
///
/// Lever   runs to convergence: pretrained weights need a fraction of the steps.
/// Cost    once the reading of the file; memory for one tensor. No cost in a step.
/// State   none: a resumed run has its own weights, and does not need the file. But it is read if
///         another policy of the recipe adapts the module, because what such a policy keeps fixed is in
///         no checkpoint.
/// Errors  those of load_weights(), before the first step.
///
/// The weights are loaded before other policies see the module, and once per module: a further fit,
/// or one after a dry run, continues with the weights that the module has.
struct WarmStart {
  using kind = kinds::warm_start;
  using listens = list<on::module, on::fit_begin, on::recorded>;

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

  template <class Context>
  class State;
};

template <class Context>
class WarmStart::State {
  using Policies = typename Context::policies;
  static constexpr bool may_wait =
      detail::has<kinds::checkpoint, Policies> && !detail::any_adapts_module<Policies>;

 public:
  using transient = void;

  explicit State(WarmStart const& settings) : settings_(&settings) {}

  void on_module(ModuleSetup<Context>& phase) {
    if (settings_->from.empty()) {
      throw SettingsError({.what = "WarmStart has no weights",
                           .where = "WarmStart::from",
                           .why = "it is empty",
                           .fix = "Give a file or a folder of weights, or remove WarmStart."});
    }
    torch::nn::Module& module = base_module(phase.module());
    detail::WarmStarted const* const before = settings_->loaded.get();
    if (before != nullptr && before->is_in(module)) return;
    waits_ = may_wait && detail::has_checkpoint(phase.settings().run_dir);
    if (!waits_) load(module);
  }

  void on_fit_begin(FitBegin<Context>& phase) {
    if (loads_) record(phase);
    if (!waits_) return;
    // The checkpoints may all be damaged, or Checkpoint may not want to resume.
    phase.when_restored([this, phase]() mutable {
      if (!std::exchange(waits_, false) || phase.run_state().resumed) return;
      load(base_module(phase.module()));
      record(phase);
    });
  }

  /// Checkpoint has taken weights of its own choice (Resume::Weights).
  void on_recorded(Recorded<Context>& phase) {
    if (phase.event.name == "weights") waits_ = false;
  }

 private:
  void load(torch::nn::Module& module) {
    settings_->loaded.set({load_weights(module, settings_->from, settings_->rules), module});
    loads_ = true;
  }
  void record(FitBegin<Context>& phase) {
    LoadedWeights const& found = settings_->weights();
    phase.record({"weights",
                  {{"from", found.file.string()},
                   {"tensors", static_cast<std::uint64_t>(found.matched.size())}}});
  }

  WarmStart const* settings_;
  bool waits_ = false;  ///< until it is known whether the run is resumed
  bool loads_ = false;
};

}  // namespace frugal
