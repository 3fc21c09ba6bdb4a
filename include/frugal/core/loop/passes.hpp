// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/grad_mode.h>
#include <c10/util/Exception.h>

#include <cstdint>
#include <exception>
#include <type_traits>
#include <utility>
#include <vector>

#include <frugal/core/loop/divided_source.hpp>
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
  static constexpr bool reevaluates = Traits::reevaluates;
  static constexpr bool measures =
      detail::provided<service::measure, typename ContextOfRun::policies>;
  static_assert(!(Traits::splits && Traits::divides),
                "frugal: the processes of this recipe (service::share) divide a window's "
                "micro-batches, and Accumulate<Auto> makes these of one batch as each process's "
                "memory allows. Use Accumulate<8> or another number.");
  static_assert(!(reevaluates && Traits::shares),
                "frugal: a line search evaluates a window as often as its own process needs, so "
                "the processes of this recipe (service::reduce) would wait for each other. Use "
                "Optimize<AdamW> or another optimizer that evaluates a window once.");

 public:
  using Context = ContextOfRun;
  using Batch = batch_of<Source>;
  /// Batches of the source per window.
  static constexpr int batches = Traits::batches;
  /// Whether anything needs to know which micro-batch is the last of its window.
  static constexpr bool places_matter =
      Context::engine::template has_subscribers<around::micro_batch>;

  /// The run's engine must be attached before the first pass.
  Passes(Run<Context>& run, Objective& objective, Source const& source)
      : run_(run), objective_(objective), source_(source) {}
  Passes(Passes const&) = delete;
  Passes& operator=(Passes const&) = delete;

  /// Begins a window with the recipe's number of micro-batches.
  void open()
    requires(!Traits::splits)
  {
    kept_.open();
    window_.open();
    if constexpr (Traits::divides) records_.clear();
  }
  /// Begins the same window again.
  void reopen()
    requires(!Traits::splits)
  {
    window_.open();
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
  /// Whether the source had no batch for the window, in any process.
  bool empty() const {
    if constexpr (is_divided_source<Source>) {
      return source_.window_batches() == 0;
    } else {
      return window_.empty();
    }
  }

  /// Trains one micro-batch.
  template <HookScope scope>
  void train(Batch& batch, MicroBatchIndex where) {
    if constexpr (places_matter && scope == HookScope::all) {
      MicroBatchRun phase(run_, where.first, where.last);
      auto body = [&] {
        pass<scope>(batch);
        if constexpr (Traits::shares) {
          // What sums gradients over processes does so next.
          if (where.last || Traits::divides) complete();
        }
      };
      run_.engine->template surround<around::micro_batch>(phase, body);
    } else {
      pass<scope>(batch);
    }
  }

  /// After a pass: what its gradients are still to be multiplied by. It does not depend on the passes
  /// before.
  double take_unit()
    requires Traits::divides
  {
    run_.window.set_gradient_unit(1);
    return window_.take_unit();
  }

  // [begin pass]
  template <HookScope scope>
  void pass(Batch& batch) {
    batch_to(batch, run_.device);
    Loss loss = forward(batch, /*training=*/true);
    require_graph(loss.value, run_.counters());
    if constexpr (scope == HookScope::all && Traits::divides) {
      require_scalars_carried(loss);
    } else if constexpr (scope == HookScope::all) {
      run_.losses.add(loss.value, *loss.weight, run_.counters());
      if (!loss.scalars.empty()) [[unlikely]]
        run_.losses.add(loss.scalars, run_.losses.leaves(loss.value) ? 0 : *loss.weight);
    }
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
    if constexpr (scope == HookScope::all && Traits::divides) {
      records_.push_back(
          {loss.value.detach(), *loss.weight, static_cast<std::uint64_t>(batch_samples(batch)),
           static_cast<std::uint64_t>(batch_tokens(batch)), std::move(loss.scalars)});
    }
    if constexpr (scope == HookScope::all) {
      if constexpr (!Traits::divides) run_.progress.count_micro_batch();
      Backward phase(run_);
      emit<on::backward, scope>(phase);
    }
  }
  // [end pass]

  /// The device work of a micro-batch, for capture in a graph, without the host's bookkeeping.
  /// Stands for `times` micro-batches.
  Loss capture(Batch const& batch, int times) {
    Loss loss = forward(batch, /*training=*/true);
    require_graph(loss.value, run_.counters());
    {
      typename decltype(window_)::OwnSeed const own(window_);
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
    if constexpr (Traits::divides) {
      join();
    } else if constexpr (!Traits::shares) {
      require_weight(window_.weight(), run_.counters(), run_.counters().position);
    }
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
      if (*loss.weight != 0) loss.value.backward(seed);
      window_.add(batch, *loss.weight);
      kept_.add(loss);
    });
    gather<HookScope::all>(/*counts=*/false);
    run_.window.set_loss(kept_.mean(window_.weight()));
    return run_.window.loss();
  }
  double weight() const { return window_.weight(); }

 private:
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
    if constexpr (Traits::divides) run_.window.set_gradient_unit(window_.unit());
    return window_.seed(loss);
  }

  // [begin backward]
  template <HookScope scope, bool captured = false>
  void backward(Loss& loss) {
    at::Tensor seed = seed_of(loss);
    LossReady ready(run_, loss, seed);
    if constexpr (Traits::shares) {
      // The other processes continue this window up to the point where all agree.
      try {
        emit<on::loss, scope>(ready);
      } catch (LossError const&) {
        run_.losses.postpone(std::current_exception());
      }
    } else {
      emit<on::loss, scope>(ready);
    }
    if constexpr (scope == HookScope::all && !captured) {
      // A mean over nothing adds nothing: its gradient may be 0 / 0, which a seed of 0 leaves NaN.
      // A trial step takes it, for its memory.
      if (*loss.weight == 0) [[unlikely]] {
        if constexpr (Traits::shares && !Traits::divides) fill_missing_gradients();
        return;
      }
    }
    guarded("the backward pass", run_.counters(), [&] { loss.value.backward(seed); });
  }
  // [end backward]

  /// Other processes add their gradients to those of this one, which may have no loss that counts.
  void fill_missing_gradients() {
    if (window_.weight() != 0) return;
    at::NoGradGuard const no_gradients;
    for (at::Tensor const& parameter : run_.parameters.tensors) {
      if (!parameter.requires_grad() || parameter.grad().defined()) continue;
      parameter.mutable_grad() = at::zeros_like(parameter);
    }
  }

  /// The window becomes that of all processes: its gradients, losses and counts.
  void join()
    requires Traits::divides
  {
    SharedWindow phase(run_, records_, preemption_requested(run_), !!run_.losses.bad());
    if constexpr (is_divided_source<Source>) phase.consumed = source_.consumed();
    run_.engine->template provider<service::share>().join(phase);
    run_.control.agree_in_window(phase.preempts);
    window_.open();
    for (MicroBatchRecord const& record : records_) {
      run_.losses.add(record.loss, record.weight, run_.counters());
      if (!record.scalars.empty()) [[unlikely]]
        run_.losses.add(record.scalars, run_.losses.leaves(record.loss) ? 0 : record.weight);
      run_.progress.count_micro_batch();
      window_.add(record.weight, record.samples, record.tokens);
    }
    if constexpr (provided<service::recover, typename Context::policies>) {
      auto& recovers = run_.engine->template provider<service::recover>();
      if constexpr (requires { recovers.on_joined(phase); }) {
        if (!phase.fails && !run_.losses.bad()) recovers.on_joined(phase);
      }
    }
    if (phase.fails || run_.losses.bad()) run_.refuse_bad_loss();
    require_weight(window_.weight(), run_.counters(), run_.counters().position);
    if constexpr (measures) {
      auto& measuring = run_.engine->template provider<service::measure>();
      if constexpr (requires { measuring.on_joined(phase); }) measuring.on_joined(phase);
    }
  }

  /// Scalars that this process must not have, or that would be an error when all are read.
  void require_scalars_carried(Loss const& loss)
    requires Traits::divides
  {
    if (loss.scalars.empty()) [[likely]]
      return;
    using Provider =
        std::remove_cvref_t<decltype(run_.engine->template provider<service::share>())>;
    if constexpr (requires { requires bool(Provider::carries_scalars); }) {
      ScalarAccumulator().add(loss.scalars, 0);
    } else {
      require_no_scalars(loss, run_.counters());
    }
  }

  void complete() {
    run_.window.gradients().collect(run_.parameters);
    window_.complete(run_.window.gradients().tensors());
    if constexpr (Traits::divides) run_.window.set_gradient_unit(1);
  }

  /// `counts`: for the window's step, and not for a trial or a line search.
  template <HookScope scope>
  void gather(bool counts) {
    run_.window.gradients().collect(run_.updated());
    if constexpr (Traits::shares) {
      // Trials are local: their number depends on this process's memory.
      double all = window_.weight();
      if constexpr (scope == HookScope::all && !Traits::divides) {
        all = run_.window_weight(all);
        require_weight(all, run_.counters(), run_.window.place().position);
      }
      window_.complete(run_.window.gradients().tensors());  // unless the last micro-batch has
      window_.normalise(run_.window.gradients().tensors(), all);
    } else {
      window_.normalise(run_.window.gradients().tensors());
    }
    Gradients phase(run_, counts);
    emit<on::gradients, scope>(phase);
  }

  Run<Context>& run_;
  Objective& objective_;
  Source const& source_;
  Window<Traits::splits ? 0 : Traits::micro_batches, Traits::shares> window_;
  [[no_unique_address]] KeptWindow<Batch, reevaluates> kept_;
  struct Nothing {};
  [[no_unique_address]] std::conditional_t<Traits::divides, std::vector<MicroBatchRecord>, Nothing>
      records_{};
};

}  // namespace frugal::detail
