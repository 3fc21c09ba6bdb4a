// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/grad_mode.h>
#include <c10/util/Exception.h>

#include <exception>
#include <utility>

#include <frugal/data/batch.hpp>
#include <frugal/loop/executor.hpp>
#include <frugal/loop/kept_window.hpp>
#include <frugal/loop/recipe_traits.hpp>
#include <frugal/loop/window.hpp>
#include <frugal/run/failure.hpp>
#include <frugal/run/objective.hpp>
#include <frugal/run/phases.hpp>
#include <frugal/run/run.hpp>

namespace frugal::detail {

/// The passes over the micro-batches of a window, forward and backward, and the update that ends
/// it. What executors are made of.
template <class ContextOfRun, class Objective, class BatchOfSource>
class Passes {
  using Traits = traits_of<ContextOfRun>;
  static constexpr bool reevaluates = Traits::reevaluates;
  static constexpr bool measures =
      detail::provided<service::measure, typename ContextOfRun::policies>;
  static_assert(!(reevaluates && Traits::shares),
                "frugal: a line search computes a window as often as its own process asks, and the "
                "processes of this recipe (service::reduce) would wait for each other. Take "
                "Optimize<AdamW> or another optimizer with one update a window.");

 public:
  using Context = ContextOfRun;
  using Batch = BatchOfSource;
  /// Of the source, to a window of the recipe.
  static constexpr int batches = Traits::batches;
  /// Does anybody have to know which micro-batch is the last of its window?
  static constexpr bool places_matter =
      Context::engine::template has_subscribers<around::micro_batch>;

  /// The run's engine has to be there before the first pass.
  Passes(Run<Context>& run, Objective& objective) : run_(run), objective_(objective) {}
  Passes(Passes const&) = delete;
  Passes& operator=(Passes const&) = delete;

  /// A new window, of the recipe's number of micro-batches.
  void open()
    requires(!Traits::splits)
  {
    kept_.open();
    window_.open();
  }
  /// The same window once more.
  void reopen()
    requires(!Traits::splits)
  {
    window_.open();
    kept_.reopen();
  }
  /// A new window, of as many micro-batches as reopen() says.
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
  bool empty() const { return window_.empty(); }

  /// One micro-batch.
  template <Audience audience>
  void train(Batch& batch, InWindow where) {
    if constexpr (places_matter && audience == Audience::all) {
      MicroBatchRun<Context> phase(run_, where.first, where.last);
      auto body = [&] { pass<audience>(batch); };
      run_.engine->template surround<around::micro_batch>(phase, body);
    } else {
      pass<audience>(batch);
    }
  }

  template <Audience audience>
  void pass(Batch& batch) {
    batch_traits<Batch>::to(batch, run_.device);
    Loss loss = forward(batch, /*training=*/true);
    require_graph(loss.value, run_.counters);
    if constexpr (audience == Audience::all) {
      run_.ledger.add(loss.value, *loss.weight, run_.counters);
      if (!loss.scalars.empty()) [[unlikely]]
        run_.ledger.add(loss.scalars, *loss.weight);
    }
    if constexpr (measures && audience == Audience::all) {
      at::NoGradGuard const no_gradients;
      run_.engine->template provider<service::measure>().trained_on(loss, std::as_const(batch),
                                                                    window_.empty());
    }
    backward<audience>(loss);
    window_.add(batch, *loss.weight);
    kept_.add(loss);
    if constexpr (audience == Audience::all) {
      ++run_.counters.micro_batch;
      Backward<Context> phase(run_);
      emit<on::backward, audience>(phase);
    }
  }

  /// What a graph does with a micro-batch, and nothing that the host does. It stands for `times`.
  Loss capture(Batch const& batch, int times) {
    Loss loss = forward(batch, /*training=*/true);
    require_graph(loss.value, run_.counters);
    {
      typename decltype(window_)::OwnSeed const own(window_);
      backward<Audience::all>(loss);
    }
    for (int k = 0; k < times; ++k) window_.add(batch, *loss.weight);
    Backward<Context> phase(run_);
    emit<on::backward, Audience::all>(phase);
    return loss;
  }
  /// A micro-batch that a graph has computed.
  void add_replayed(Batch const& batch, at::Tensor const& loss, double weight,
                    Scalars const& scalars) {
    run_.ledger.add(loss, weight, run_.counters);
    if (!scalars.empty()) run_.ledger.add(scalars, weight);
    window_.add(batch, weight);
    ++run_.counters.micro_batch;
  }

  template <class B>
  Loss forward(B const& batch, bool training) {
    Forward<Context> phase(run_, training);
    auto const objective = [&]() -> Loss { return as_loss(objective_(run_.module, batch)); };
    Loss loss = [&]() -> Loss {
      try {
        return run_.engine->template surround<around::forward>(phase, objective);
      } catch (c10::Error const& error) {
        refuse_forward(error, batch, run_.counters);
      }
    }();
    require_scalar(loss.value, run_.counters);
    if (!loss.weight) loss.weight = static_cast<double>(batch_traits<B>::samples(batch));
    return loss;
  }

  /// Counts a window that is complete, and updates.
  Trained finish() {
    count();
    update<Audience::all>();
    return close();
  }

  void count() {
    Counters& at = run_.counters;
    if (at.window_skipped == 0) at.window_micro_batches = at.window_samples = at.window_tokens = 0;
    at.window_micro_batches += window_.micro_batches();
    at.window_samples += window_.samples();
    at.window_tokens += window_.tokens();
    at.position += window_.samples();
    at.sample += window_.samples();
    at.token += window_.tokens();
  }

  template <Audience audience>
  void update() {
    gather<audience>();
    if constexpr (reevaluates) run_.window_loss = kept_.mean(window_.weight());
    Update<Context> phase(run_);
    guarded("the update", run_.counters, [&] { emit<on::update, audience>(phase); });
  }

  Trained close() {
    bool const step = release();
    run_.counters.window_skipped = step ? 0 : 1;
    ++(step ? run_.counters.step : run_.counters.skipped);
    return step ? Trained::a_step : Trained::skipped;
  }
  /// Lets go of the gradients. False if they had overflowed.
  bool release() {
    run_.gradients.clear();
    run_.parameters.reset_gradients();
    return !std::exchange(run_.overflow.skip, false);
  }

  /// The window once more, for optimizers that search along a line; nobody hears of it but the
  /// gradients' subscribers, who clip what the optimizer sees. `over(batches, pass)` calls `pass`
  /// with each micro-batch.
  template <class Over>
  at::Tensor reevaluate(Over&& over) {
    if (run_.overflow.found.defined()) refuse_reevaluation();
    at::AutoGradMode const gradients(true);
    run_.parameters.reset_gradients();
    over(kept_.batches(), [this](auto& batch) {
      // The parts of a batch that was split are made anew.
      if constexpr (Traits::splits) batch_traits<Batch>::to(batch, run_.device);
      Loss loss = forward(batch, /*training=*/true);
      loss.value.backward(window_.seed(loss));
      window_.add(batch, *loss.weight);
      kept_.add(loss);
    });
    gather<Audience::all>();
    return run_.window_loss = kept_.mean(window_.weight());
  }
  double weight() const { return window_.weight(); }

 private:
  template <class Hook, Audience audience, class Phase>
  void emit(Phase& phase) {
    if constexpr (audience == Audience::all) {
      run_.engine->template emit<Hook>(phase);
    } else {
      run_.engine->template emit_to_slots<Hook>(phase);
    }
  }

  template <Audience audience>
  void backward(Loss& loss) {
    at::Tensor seed = window_.seed(loss);
    LossReady<Context> ready(run_, loss, seed);
    if constexpr (Traits::shares) {
      // The other processes go on with this window, up to where all agree on it.
      try {
        emit<on::loss, audience>(ready);
      } catch (LossError const&) {
        run_.ledger.postpone(std::current_exception());
      }
    } else {
      emit<on::loss, audience>(ready);
    }
    guarded("the backward pass", run_.counters, [&] { loss.value.backward(seed); });
  }

  template <Audience audience>
  void gather() {
    run_.gradients.collect(run_.parameters);
    if constexpr (Traits::shares) {
      // A trial is this process's own: how many there are depends on its memory.
      double const here = window_.weight();
      window_.settle(run_.gradients.tensors(),
                     audience == Audience::all ? run_.window_weight(here) : here);
    } else {
      window_.settle(run_.gradients.tensors());
    }
    Gradients<Context> phase(run_);
    emit<on::gradients, audience>(phase);
  }

  Run<Context>& run_;
  Objective& objective_;
  Window<Traits::splits ? 0 : Traits::micro_batches, Traits::shares> window_;
  [[no_unique_address]] KeptWindow<Batch, reevaluates> kept_;
};

}  // namespace frugal::detail
