// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/grad_mode.h>
#include <c10/util/Exception.h>

#include <concepts>
#include <utility>

#include <frugal/core/libtorch/modes.hpp>
#include <frugal/core/loop/window.hpp>
#include <frugal/core/measure/measure.hpp>
#include <frugal/core/run/context.hpp>
#include <frugal/core/run/failure.hpp>
#include <frugal/core/run/recipe_traits.hpp>
#include <frugal/core/run/run.hpp>
#include <frugal/core/source/batch.hpp>
#include <frugal/core/source/source.hpp>

namespace frugal::detail {

/// A run outside of a fit, of whose policies the slots that guard a forward pass are set up. Observers see
/// nothing.
template <class Context, class Objective>
class RunOutsideFit {
 public:
  template <class Policies>
  RunOutsideFit(typename Context::module_type& module, Objective& objective,
                Settings const& settings, Policies const& policies)
      : engine_(policies, Context::facts_of(policies)),
        run_(module, settings, {}, Context::facts_of(policies), Context::metrics_of(policies)),
        objective_(objective) {
    run_.engine = &engine_;
    FitBegin phase(run_);
    engine_.template emit_to_slots_of<on::fit_begin, around::forward>(phase);
  }

 protected:
  template <class Batch>
  Loss loss_of(Batch const& batch) {
    return as_loss(objective_(run_.module, batch));
  }

  typename Context::engine engine_;
  Run<Context> run_;

 private:
  Objective& objective_;
};

/// Forward passes outside of a fit: in evaluation mode, without gradients, on the device of the
/// settings, where the trainer has put the module, under the guards of the recipe's slots (its
/// precision). Observers see nothing. Restores modes afterwards; the call, which is in progress
/// (CallInProgress), the generators.
template <class Context, class Objective>
class Evaluation : private RunOutsideFit<Context, Objective> {
  using Base = RunOutsideFit<Context, Objective>;
  using Base::engine_;
  using Base::run_;

 public:
  using Base::Base;

  template <class Source>
  Metrics evaluate(Source& source) {
    auto const loss_of = [this](auto const& batch) {
      Loss loss = pass(batch, [&] { return this->loss_of(batch); });
      require_scalar(loss.value, run_.counters());
      if (!loss.weight) loss.weight = samples_of(batch);
      return loss;
    };
    return measure<typename traits_of<Context>::metrics, strategy_of<typename Context::policies>>(
        source, run_, loss_of, {.is_alone = true}, run_.metrics);
  }

  /// `forward(module, batch)` is what `sink(output, batch)` gets.
  template <class Source, class Forward, class Sink>
  void predict(Source& source, Forward&& forward, Sink&& sink) {
    constexpr bool takes_both = std::invocable<Sink&, at::Tensor, batch_of<Source> const&>;
    static_assert(takes_both,
                  "frugal: predict's sink cannot be called with (output, batch). Write "
                  "`[](at::Tensor const& output, auto const& batch) { ... }`.");
    at::NoGradGuard const no_gradients;
    EvaluationMode const mode(run_.root);
    source.seek(Cursor{.seed = run_.settings.seed, .in_order = true});
    while (auto batch = source.next()) {
      batch_to(*batch, run_.device);
      Loss made = pass(*batch, [&] {
        return Loss{.value = {}, .weight = {}, .output = forward(run_.module, *batch)};
      });
      if constexpr (takes_both) sink(std::move(made.output), std::as_const(*batch));
    }
  }

 private:
  template <class Batch>
  static double samples_of(Batch const& batch) {
    return static_cast<double>(batch_samples(batch));
  }

  template <class Batch, class Body>
  Loss pass(Batch const& batch, Body&& body) {
    Forward phase(run_, /*is_training=*/false);
    try {
      return engine_.template surround_slots<around::forward>(phase, body);
    } catch (c10::Error const& error) {
      refuse_forward(error, batch, run_.counters(), run_.parameters);
    }
  }
};

}  // namespace frugal::detail
