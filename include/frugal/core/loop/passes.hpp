// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/grad_mode.h>
#include <c10/util/Exception.h>

#include <cstdint>
#include <exception>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include <frugal/core/loop/executor.hpp>
#include <frugal/core/loop/interruption.hpp>
#include <frugal/core/loop/window.hpp>
#include <frugal/core/run/failure.hpp>
#include <frugal/core/run/objective.hpp>
#include <frugal/core/run/phases.hpp>
#include <frugal/core/run/recipe_traits.hpp>
#include <frugal/core/run/run.hpp>
#include <frugal/core/run/scalar_accumulator.hpp>
#include <frugal/core/run/services.hpp>
#include <frugal/core/source/batch.hpp>
#include <frugal/core/source/source.hpp>

namespace frugal::detail {

/// The forward and backward passes over a window's micro-batches, and the update that ends it.
/// Executors are built on these.
template <class ContextOfRun, class Objective, class Source>
class Passes {
  using Traits = traits_of<ContextOfRun>;
  using Window =
      typename strategy_of<typename ContextOfRun::policies>::template Window<ContextOfRun>;
  static constexpr bool reevaluates = Traits::reevaluates;
  static constexpr bool measures =
      detail::provided<service::measure, typename ContextOfRun::policies>;

 public:
  using Context = ContextOfRun;
  using Batch = batch_of<Source>;
  /// Whether anything needs to know which micro-batch is the last of its window.
  static constexpr bool places_matter =
      Context::engine::template has_subscribers<around::micro_batch>;

  /// The run's engine must be attached before the first pass.
  Passes(Run<Context>& run, Objective& objective, Source const& source)
      : run_(run), objective_(objective), source_(source), window_(run) {}
  Passes(Passes const&) = delete;
  Passes& operator=(Passes const&) = delete;

  /// Begins a window with the recipe's number of micro-batches.
  void open()
    requires(!Traits::splits)
  {
    kept_.open();
    open_window();
  }
  /// Begins the same window again.
  void reopen()
    requires(!Traits::splits)
  {
    open_window();
    kept_.reopen();
  }
  /// Begins a window whose number of micro-batches reopen() sets.
  void open()
    requires Traits::splits
  {
    kept_.open();
  }
  void reopen(std::int64_t micro_batches)
    requires Traits::splits
  {
    window_.open(micro_batches);
    kept_.reopen();
  }
  void keep(Batch&& batch) { kept_.keep(std::move(batch)); }

  Run<Context>& run() { return run_; }
  /// Batches of the source per window.
  int batches() const { return run_.batches(); }
  Window& window() { return window_; }
  /// Whether the source had no batch for the window.
  bool empty() const { return window_.is_empty(source_); }

  /// Trains one micro-batch.
  template <HookScope scope>
  void train(Batch& batch, MicroBatchIndex where) {
    if constexpr (places_matter && scope == HookScope::all) {
      MicroBatchRun phase(run_, where.first, where.last);
      auto body = [&] {
        pass<scope>(batch);
        window_.passed(where.last);
      };
      run_.engine->template surround<around::micro_batch>(phase, body);
    } else {
      pass<scope>(batch);
    }
  }

  // [begin pass]
  template <HookScope scope>
  void pass(Batch& batch) {
    batch_to(batch, run_.device);
    Loss loss = forward(batch, /*training=*/true);
    require_graph(loss, run_.counters());
    if constexpr (scope == HookScope::all) window_.read(loss);
    if constexpr (measures && scope == HookScope::all) {
      at::NoGradGuard const no_gradients;
      auto const show = [&](Loss const& shown) {
        run_.engine->template provider<service::measure>().trained_on(shown, std::as_const(batch),
                                                                      window_.empty());
      };
      if (run_.losses.leaves(loss.value)) [[unlikely]] {
        Loss left = loss;
        left.weight = 0;
        show(left);
      } else {
        show(loss);
      }
    }
    backward<scope>(loss);
    window_.add(batch, *loss.weight);
    kept_.add(loss);
    if constexpr (scope == HookScope::all) {
      window_.trained(batch, loss);
      Backward phase(run_);
      emit<on::backward, scope>(phase);
    }
  }
  // [end pass]

  /// The device work of a micro-batch, for capture in a graph, without the host's bookkeeping.
  /// Stands for `times` micro-batches.
  Loss capture(Batch const& batch, int times) {
    Loss loss = forward(batch, /*training=*/true);
    require_graph(loss, run_.counters());
    {
      WindowCounts::OwnSeed const own(window_);
      backward<HookScope::all, /*captured=*/true>(loss);
    }
    for (int k = 0; k < times; ++k) window_.add(batch, *loss.weight);
    Backward phase(run_);
    emit<on::backward, HookScope::all>(phase);
    return loss;
  }
  /// Bookkeeping of a micro-batch that a graph has computed.
  void add_replayed(Batch const& batch, at::Tensor const& loss, double weight,
                    Scalars const& scalars) {
    run_.losses.add(loss, weight, run_.counters());
    if (!scalars.empty()) run_.losses.add(scalars, weight);
    window_.add(batch, weight);
    run_.progress.count_micro_batch();
  }

  template <class B>
  Loss forward(B const& batch, bool training) {
    if (training) run_.hold.before_pass();
    Forward phase(run_, training);
    auto const objective = [&]() -> Loss { return as_loss(objective_(run_.module, batch)); };
    Loss loss = [&]() -> Loss {
      try {
        return run_.engine->template surround<around::forward>(phase, objective);
      } catch (c10::Error const& error) {
        refuse_forward(error, batch, run_.counters(), run_.parameters);
      }
    }();
    require_scalar(loss.value, run_.counters());
    if (!loss.weight) loss.weight = static_cast<double>(batch_samples(batch));
    return loss;
  }

  // [begin finish]
  /// Counts the completed window, and updates.
  StepOutcome finish() {
    window_.end(source_);
    count();
    update<HookScope::all>();
    return close();
  }
  // [end finish]

  void count() {
    Counters const& at = run_.counters();
    run_.window.set_place({at.epoch, at.position, at.step});
    run_.progress.add_window({window_.micro_batches(), window_.samples(), window_.tokens()},
                             position_after(source_, at.position, window_.samples()));
  }

  // [begin update]
  template <HookScope scope>
  void update() {
    gather<scope>(scope == HookScope::all);
    if constexpr (reevaluates) run_.window.set_loss(kept_.mean(window_.weight()));
    Update phase(run_);
    guarded("the update", run_.counters(), [&] { emit<on::update, scope>(phase); });
  }
  // [end update]

  StepOutcome close() {
    bool const step = release();
    run_.progress.close_window(step);
    return step ? StepOutcome::completed : StepOutcome::skipped;
  }
  /// Releases the gradients. False if they overflowed.
  bool release() {
    run_.window.gradients().clear();
    run_.parameters.reset_gradients();
    return !run_.window.take_skip();
  }

  /// Recomputes the window, for optimizers with a line search. Only the gradient hooks are emitted,
  /// so that clipping applies to what the optimizer sees. `over(batches, pass)` calls `pass` with
  /// each micro-batch.
  template <class Over>
  at::Tensor reevaluate(Over&& over) {
    if (run_.window.overflow().defined()) refuse_reevaluation();
    at::AutoGradMode const gradients(true);
    run_.parameters.reset_gradients();
    over(kept_.batches(), [this](auto& batch) {
      // The parts of a split batch are copied to the device again.
      if constexpr (Traits::splits) batch_to(batch, run_.device);
      Loss loss = forward(batch, /*training=*/true);
      at::Tensor const seed = seed_of(loss);
      if (*loss.weight != 0) detail::backward(loss, seed, window_.seed_value());
      window_.add(batch, *loss.weight);
      kept_.add(loss);
    });
    gather<HookScope::all>(/*counts=*/false);
    run_.window.set_loss(kept_.mean(window_.weight()));
    return run_.window.loss();
  }
  double weight() const { return window_.weight(); }

 private:
  void open_window() {
    if constexpr (requires { window_.open(); }) {
      window_.open();
    } else {
      window_.open(batches());
    }
  }

  template <class Hook, HookScope scope, class Phase>
  void emit(Phase& phase) {
    if constexpr (scope == HookScope::all) {
      run_.engine->template emit<Hook>(phase);
    } else {
      run_.engine->template emit_to_slots<Hook>(phase);
    }
  }

  /// The seed of a loss's backward pass. Where the loss is heavier than those before, the gradients
  /// so far make room for it.
  at::Tensor seed_of(Loss const& loss) {
    double const factor = window_.shrink(*loss.weight);
    if (factor != 1) [[unlikely]] {
      at::NoGradGuard const no_gradients;
      run_.window.gradients().collect(run_.parameters);
      if (!run_.window.gradients().tensors().empty())
        at::_foreach_mul_(run_.window.gradients().tensors(), factor);
    }
    return window_.seed(loss);
  }

  // [begin backward]
  template <HookScope scope, bool captured = false>
  void backward(Loss& loss) {
    at::Tensor seed = seed_of(loss);
    void const* const unscaled = seed.unsafeGetTensorImpl();
    LossReady ready(run_, loss, seed);
    window_.judge([&] { emit<on::loss, scope>(ready); });
    if constexpr (scope == HookScope::all && !captured) {
      // A mean over nothing adds nothing: its gradient may be 0 / 0, which a seed of 0 leaves NaN.
      // A trial step takes it, for its memory.
      if (*loss.weight == 0) [[unlikely]]
        return window_.pass_over();
    }
    guarded("the backward pass", run_.counters(), [&] {
      bool const known = seed.unsafeGetTensorImpl() == unscaled;
      detail::backward(loss, seed, known ? std::optional(window_.seed_value()) : std::nullopt);
    });
  }
  // [end backward]

  /// `counts`: for the window's step, and not for a trial or a line search.
  template <HookScope scope>
  void gather(bool counts) {
    run_.window.gradients().collect(run_.updated());
    window_.finish_gradients(run_.window.gradients().tensors(), scope == HookScope::slots);
    Gradients phase(run_, counts);
    emit<on::gradients, scope>(phase);
  }

  Run<Context>& run_;
  Objective& objective_;
  Source const& source_;
  Window window_;
  [[no_unique_address]] KeptWindow<Batch, reevaluates> kept_;
};

}  // namespace frugal::detail
