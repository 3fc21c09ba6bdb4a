// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/Context.h>
#include <ATen/core/grad_mode.h>
#include <c10/util/Exception.h>
#include <torch/csrc/autograd/variable.h>

#include <chrono>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <frugal/compose/composition.hpp>
#include <frugal/data/source.hpp>
#include <frugal/loop/failure.hpp>
#include <frugal/loop/generators.hpp>
#include <frugal/loop/horizon.hpp>
#include <frugal/loop/kept_window.hpp>
#include <frugal/loop/kinds.hpp>
#include <frugal/loop/measure.hpp>
#include <frugal/loop/phase.hpp>
#include <frugal/loop/rehearsal.hpp>
#include <frugal/loop/window.hpp>
#include <frugal/watch/report.hpp>

namespace frugal {

namespace detail {

/// One fit: the loop, from top to bottom. `Valid` is void when there is no validation data.
///
///     begin, for each epoch: { for each window: { for each micro-batch: forward, backward;
///     gradients, update, step }, epoch end }, end
template <class Context, class Objective, class Train, class Valid>
class Fit {
  using Module = typename Context::module_type;
  using Engine = typename Context::engine;
  using TrainBatch = batch_of<Train>;

  template <class Kind>
  using slot = slot_of<Kind, typename Context::policies>;

  static constexpr int micro_batches = slot<kinds::accumulate>::steps;
  static constexpr bool reevaluates = requires { slot<kinds::optimizer>::reevaluates; };
  static constexpr bool validates = !std::is_void_v<Valid>;
  static constexpr bool saves = has<kinds::checkpoint, typename Context::policies>;
  static constexpr bool rolls_back = has<kinds::rollback, typename Context::policies>;
  static constexpr bool interruptible = has<kinds::spot, typename Context::policies>;

 public:
  template <class Policies>
  Fit(Module& module, Objective& objective, Settings const& settings, Policies const& policies,
      Train& train, std::add_pointer_t<Valid> valid)
      : objective_(objective),
        train_(train),
        valid_(valid),
        engine_(policies),
        run_{.module = module,
             .settings = settings,
             .parameters = Parameters::of(base_module(module)),
             .horizon = detail::horizon_of(settings, train, micro_batches)} {}

  Report run() {
    auto const start = std::chrono::steady_clock::now();
    try {
      if (begin()) {
        while (going()) train_epoch();
        end();
      }
    } catch (...) {
      // The caller gets the module back as if the broken step had never begun.
      run_.parameters.reset_gradients();
      throw;
    }
    std::chrono::duration<double> const spent = std::chrono::steady_clock::now() - start;
    return {.epochs = run_.counters.epoch,
            .steps = run_.counters.step,
            .samples = run_.counters.sample,
            .seconds = spent.count(),
            .train_loss = run_.epoch_loss,
            .stopped_by = run_.stopped_by,
            .validations = run_.validations,
            .advice = run_.advice,
            .resumed = run_.resumed,
            .preempted = run_.preempted,
            .skipped = run_.counters.skipped};
  }

  /// Only the optimizer is set up: it has state to save, and observers would write files.
  std::vector<Check> rehearsal(std::size_t batches) {
    KeepModes const modes(base_module(run_.module));
    try {
      prepare();
      FitBegin<Context> phase(run_);
      if constexpr (!std::same_as<typename slot<kinds::optimizer>::listens, list<>>) {
        engine_.template state<kinds::optimizer>().on_fit_begin(phase);
      }
      return rehearse(batches);
    } catch (Error const& error) {
      return {{"set-up", false, error.what()}};
    } catch (Interrupted const&) {
      return {{"time", false, "the machine is about to go"}};
    }
  }

 private:
  bool going() const {
    return !stopped_ && run_.counters.epoch < run_.horizon.epochs &&
           run_.counters.step < run_.horizon.steps;
  }

  /// False if the machine went before there was anything to train.
  bool begin() {
    prepare();
    // Not in prepare(): a rehearsal leaves the generators to whoever uses them.
    at::manual_seed(run_.settings.seed);
    FitBegin<Context> phase(run_);
    try {
      heed(engine_.template emit<on::fit_begin>(phase, who()));
    } catch (Interrupted const&) {
      if constexpr (interruptible) engine_.template state<kinds::spot>().abandon();
      leave();
      return false;
    }
    // A resumed run may have ended, or been left in the middle of an event.
    if (!run_.stopped_by.empty()) stopped_ = true;
    Unfinished const left = std::exchange(run_.unfinished, {});
    if (left.hook == on::step::index) tell<on::step, Step<Context>>(left.subscriber);
    if (left.hook == on::epoch_end::index) tell<on::epoch_end, EpochEnd<Context>>(left.subscriber);
    if constexpr (rolls_back) {
      Resting<Context> good(run_);
      engine_.template state<kinds::rollback>().begin(good);
    }
    // It may have been left at its last step, and not have come to what follows that step.
    if (!going() && run_.counters.position != 0) {
      train_.seek(place());
      leave_epoch();
    }
    return true;
  }

  /// An event at which the run may end. One that can be broken off is told on by the run that
  /// resumes this one.
  template <class Hook, class Phase>
  void tell(std::size_t first = 0) {
    Phase phase(run_);
    if constexpr (interruptible) {
      try {
        heed(engine_.template emit_from<Hook>(first, phase, who()));
      } catch (Interrupted const& at) {
        run_.unfinished = {Hook::index, at.subscriber};
        engine_.template state<kinds::spot>().leave(phase);
        leave();
      }
    } else {
      heed(engine_.template emit<Hook>(phase, who()));
    }
  }

  void leave() {
    run_.preempted = stopped_ = true;
    who()(kinds::spot::name);
  }

  void prepare() {
    require_parameters(run_.parameters);
    torch::nn::Module& module = base_module(run_.module);
    if (run_.parameters.tensors.front().device() != run_.settings.device) {
      module.to(run_.settings.device);
    }
    if (!module.is_training()) module.train();
    run_.parameters.reset_gradients();
    run_.gradients.reserve(run_.parameters.size());
    run_.engine = &engine_;
    if constexpr (validates) run_.validate = [this] { return validate(); };
    if constexpr (saves) {
      run_.save = [this] {
        Resting<Context> phase(run_);
        return engine_.template state<kinds::checkpoint>().save(phase);
      };
      run_.save_seconds = [this] {
        return engine_.template state<kinds::checkpoint>().save_seconds();
      };
    }
    run_.rehearse = [this](std::size_t batches) { return rehearse(batches); };
    if constexpr (reevaluates) run_.reevaluate = [this] { return reevaluate(); };
  }

  /// An epoch, or what is left of it; less where Rollback has to take the run back, into an earlier
  /// one perhaps.
  void train_epoch() {
    if constexpr (rolls_back) {
      try {
        train_windows();
      } catch (LossError const& error) {
        run_.parameters.reset_gradients();
        run_.gradients.clear();
        run_.ledger.reset();
        Resting<Context> phase(run_);
        if (!engine_.template state<kinds::rollback>().go_back(phase, error)) throw;
      }
    } else {
      train_windows();
    }
  }

  void train_windows() {
    Counters& at = run_.counters;
    train_.seek(place());
    bool const resumed = at.position != 0;
    if (!resumed) {
      // Here and not at the epoch's end, whose checkpoint would go on with its losses.
      run_.ledger.reset();
      EpochBegin<Context> phase(run_);
      engine_.template emit<on::epoch_begin>(phase);
    }
    std::uint64_t const before = at.micro_batch;
    while (!stopped_ && at.step < run_.horizon.steps) {
      if (train_window()) continue;
      if (!resumed && at.micro_batch == before) refuse_empty_source("training", at.epoch);
      end_epoch();
      return;
    }
    leave_epoch();
  }

  /// No step is left to the run. Its last one may be the epoch's last too: one look past it tells.
  void leave_epoch() {
    run_.epoch_loss = run_.ledger.mean();
    if (!stopped_ && !train_.next()) end_epoch();
  }

  Cursor place() const { return {run_.settings.seed, run_.counters.epoch, run_.counters.position}; }

  void end_epoch() {
    ++run_.counters.epoch;
    run_.counters.position = 0;
    run_.epoch_loss = run_.ledger.mean();
    tell<on::epoch_end, EpochEnd<Context>>();
  }

  /// One optimizer step. Returns false when the epoch has no micro-batch left.
  bool train_window() {
    if constexpr (rolls_back) {
      if (engine_.template state<kinds::rollback>().skips(run_.counters)) return skip_window();
    }
    window_.open();
    kept_.open();
    for (int k = 0; k < micro_batches; ++k) {
      auto batch = train_.next();
      if (!batch) break;
      train_micro_batch(*batch);
      kept_.keep(std::move(*batch));
    }
    if (window_.empty()) return false;
    count_window();
    if (update()) tell<on::step, Step<Context>>();
    return true;
  }

  /// Passes over the batches of one window.
  bool skip_window() {
    std::uint64_t samples = 0;
    for (int k = 0; k < micro_batches; ++k) {
      auto batch = train_.next();
      if (!batch) break;
      samples += static_cast<std::uint64_t>(batch_traits<TrainBatch>::samples(*batch));
    }
    run_.counters.position += samples;
    return samples != 0;
  }

  void train_micro_batch(TrainBatch& batch) {
    batch_traits<TrainBatch>::place(batch, run_.settings.device);
    Loss loss = forward_pass(batch, /*training=*/true);
    require_graph(loss.value, run_.counters);
    run_.ledger.add(loss.value, *loss.weight, run_.counters);
    at::Tensor seed = window_.seed(loss);
    LossReady<Context> ready(run_, loss, seed);
    engine_.template emit<on::loss>(ready);
    detail::guarded("the backward pass", run_.counters, [&] { loss.value.backward(seed); });
    window_.add(batch, *loss.weight);
    kept_.add(loss);
    ++run_.counters.micro_batch;
    Backward<Context> phase(run_);
    engine_.template emit<on::backward>(phase);
  }

  template <class B>
  Loss forward_pass(B const& batch, bool training) {
    Forward<Context> phase(run_, training);
    auto const objective = [&]() -> Loss { return as_loss(objective_(run_.module, batch)); };
    Loss loss = [&]() -> Loss {
      try {
        return engine_.template surround<around::forward>(phase, objective);
      } catch (c10::Error const& error) {
        refuse_forward(error, batch, run_.counters);
      }
    }();
    require_scalar(loss.value, run_.counters);
    if (!loss.weight) loss.weight = static_cast<double>(batch_traits<B>::samples(batch));
    return loss;
  }

  void count_window() {
    Counters& at = run_.counters;
    if (at.window_skipped == 0) at.window_micro_batches = at.window_samples = at.window_tokens = 0;
    at.window_micro_batches += window_.micro_batches();
    at.window_samples += window_.samples();
    at.window_tokens += window_.tokens();
    at.position += window_.samples();
    at.sample += window_.samples();
    at.token += window_.tokens();
  }

  /// False if it was no step: the gradients had overflowed.
  bool update() {
    gather_gradients();
    if constexpr (reevaluates) run_.window_loss = kept_.mean(window_.weight());
    Update<Context> phase(run_);
    detail::guarded("the update", run_.counters, [&] { engine_.template emit<on::update>(phase); });
    run_.gradients.clear();
    run_.parameters.reset_gradients();
    bool const skip = std::exchange(run_.overflow.skip, false);
    run_.counters.window_skipped = skip ? 1 : 0;
    ++(skip ? run_.counters.skipped : run_.counters.step);
    return !skip;
  }

  void gather_gradients() {
    run_.gradients.collect(run_.parameters);
    window_.settle(run_.gradients.tensors());
    Gradients<Context> phase(run_);
    engine_.template emit<on::gradients>(phase);
  }

  /// The window once more, for optimizers that search along a line; nobody hears of it but the
  /// gradients' subscribers, who clip what the optimizer sees.
  at::Tensor reevaluate() {
    if (run_.overflow.found.defined()) refuse_reevaluation();
    at::AutoGradMode const gradients(true);
    run_.parameters.reset_gradients();
    window_.open();
    kept_.reopen();
    for (TrainBatch const& batch : kept_.batches()) {
      Loss loss = forward_pass(batch, /*training=*/true);
      loss.value.backward(window_.seed(loss));
      window_.add(batch, *loss.weight);
      kept_.add(loss);
    }
    gather_gradients();
    return run_.window_loss = kept_.mean(window_.weight());
  }

  flow validate() {
    if constexpr (validates) {
      ValidationRun<Context> phase(run_);
      [[maybe_unused]] KeepGenerators<interruptible> generators(run_.settings.device);
      Metrics metrics = engine_.template surround<around::validate>(phase, [&] {
        using measured = typename slot<kinds::validate>::metrics;
        return detail::measure<measured>(*valid_, run_, [this](auto const& batch) {
          heed_interrupts();
          // clang 19 misses the use of this in a bare name
          return this->forward_pass(batch, /*training=*/false);
        });
      });
      generators.dismiss();
      // Validation on the training source itself has moved it.
      if (static_cast<void const*>(valid_) == static_cast<void const*>(&train_)) {
        train_.seek(place());
      }
      run_.validations.push_back({run_.counters.epoch, run_.counters.step, std::move(metrics)});
      Validated<Context> validated(run_, run_.validations.back().metrics);
      return engine_.template emit<on::validated>(validated, who());
    } else {
      return flow::proceed;
    }
  }

  std::vector<Check> rehearse(std::size_t batches) {
    return Rehearsal<Context>(run_).run(train_, batches, [this](TrainBatch& batch) {
      heed_interrupts();
      batch_traits<TrainBatch>::place(batch, run_.device);
      Loss loss = forward_pass(batch, /*training=*/true);
      require_graph(loss.value, run_.counters);
      loss.value.backward();
      return loss;
    });
  }

  void end() {
    FitEnd<Context> phase(run_);
    engine_.template emit<on::fit_end>(phase);
  }

  /// Before each batch of what is not training: a step is finished, a validation begun again.
  void heed_interrupts() {
    if constexpr (interruptible) {
      if (engine_.template state<kinds::spot>().asked()) throw Interrupted{};
    }
  }

  void heed(flow verdict) { stopped_ = stopped_ || verdict == flow::stop; }
  auto who() {
    return [this](std::string_view kind) {
      if (run_.stopped_by.empty()) run_.stopped_by = kind;
    };
  }

  Objective& objective_;
  Train& train_;
  std::add_pointer_t<Valid> valid_;
  Engine engine_;
  Run<Context> run_;
  Window<micro_batches> window_;
  bool stopped_ = false;
  [[no_unique_address]] KeptWindow<TrainBatch, reevaluates> kept_;
};

}  // namespace detail

}  // namespace frugal
