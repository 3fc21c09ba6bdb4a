// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/Context.h>
#include <ATen/core/grad_mode.h>
#include <c10/util/Exception.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <frugal/compose/composition.hpp>
#include <frugal/data/source.hpp>
#include <frugal/loop/captures.hpp>
#include <frugal/loop/devices.hpp>
#include <frugal/loop/failure.hpp>
#include <frugal/loop/generators.hpp>
#include <frugal/loop/horizon.hpp>
#include <frugal/loop/kept_window.hpp>
#include <frugal/loop/kinds.hpp>
#include <frugal/loop/measure.hpp>
#include <frugal/loop/move.hpp>
#include <frugal/loop/phase.hpp>
#include <frugal/loop/rehearsal.hpp>
#include <frugal/loop/trial.hpp>
#include <frugal/loop/window.hpp>
#include <frugal/loop/window_start.hpp>
#include <frugal/watch/report.hpp>

namespace frugal {

namespace detail {

/// Stands where a recipe whose windows are not split has nothing.
struct Unsplit {};

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
  static constexpr bool splits = requires { slot<kinds::accumulate>::splits; };
  static constexpr bool probes = has<kinds::auto_batch, typename Context::policies>;
  static constexpr bool captures = captures_steps<typename Context::policies>;
  static constexpr bool interruptible = has<kinds::spot, typename Context::policies>;
  static constexpr bool starts_on_cpu = has<kinds::start, typename Context::policies>;

  static_assert(!splits || Splittable<TrainBatch>,
                "frugal: Accumulate<Auto> splits batches, and the batch_traits of this batch type "
                "have no narrow. Give them `static B narrow(B const&, std::int64_t begin, "
                "std::int64_t count)`.");

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
      phase.settle();
    } catch (Interrupted const&) {
      if constexpr (interruptible) engine_.template state<kinds::spot>().abandon();
      leave();
      return false;
    }
    // A resumed run may have ended, or been left in the middle of an event.
    if (!run_.stopped_by.empty()) stopped_ = true;
    if constexpr (starts_on_cpu) {
      if (engine_.template state<kinds::start>().moved_before()) move_when_due();
    }
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
    if constexpr (captures) slot<kinds::execution>::require(run_.settings.device);
    torch::nn::Module& module = base_module(run_.module);
    detail::require_device(run_.settings.device);
    if constexpr (starts_on_cpu) run_.device = c10::Device(c10::kCPU);
    if (run_.parameters.tensors.front().device() != run_.device) module.to(run_.device);
    // A source that copies ahead has to know where to.
    if constexpr (requires { train_.follow(run_.device); }) train_.follow(run_.device);
    if constexpr (requires { valid_->follow(run_.device); }) {
      if (valid_ != nullptr) valid_->follow(run_.device);
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
    if constexpr (probes) run_.settle = [this] { find_micro_batch(); };
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
    if constexpr (starts_on_cpu) move_when_due();
    if constexpr (rolls_back) {
      if (engine_.template state<kinds::rollback>().skips(run_.counters)) return skip_window();
    }
    if constexpr (captures) return train_captured_window();
    kept_.open();
    if constexpr (splits) {
      auto batch = train_.next();
      if (!batch) return false;
      in_parts(*batch, [this](TrainBatch& part) { train_micro_batch(part); }, [this] { undo(); });
      kept_.keep(std::move(*batch));
    } else {
      window_.open();
      for (int k = 0; k < micro_batches; ++k) {
        auto batch = train_.next();
        if (!batch) break;
        train_micro_batch(*batch);
        kept_.keep(std::move(*batch));
      }
    }
    if (window_.empty()) return false;
    count_window();
    if (update()) tell<on::step, Step<Context>>();
    return true;
  }

  /// From the CPU to the run's device, once its early phase is over.
  void move_when_due() {
    Resting<Context> phase(run_);
    auto& start = engine_.template state<kinds::start>();
    if (!start.due(phase)) return;
    start.move(phase);
    detail::move_run(run_, run_.settings.device);
    // To Rollback a load is a return, after which it has nothing kept.
    if constexpr (rolls_back) engine_.template state<kinds::rollback>().begin(phase);
  }

  /// Passes over a batch in micro-batches, anew and in smaller ones for as long as memory does not
  /// suffice. What the passes have touched is put back before that, and then `undone()` is called.
  template <class Pass, class Undone>
  void in_parts(TrainBatch const& batch, Pass&& pass, Undone&& undone) {
    auto& split = engine_.template state<kinds::accumulate>();
    std::int64_t const samples = batch_traits<TrainBatch>::samples(batch);
    start_.take(run_);
    for (bool done = false; !done;) {
      auto const parts = split.parts(samples);
      if (parts.count > 1) split.split(Phase<Context>(run_));
      window_.open(parts.count);
      kept_.reopen();
      try {
        [[maybe_unused]] auto const limit = memory_limit();
        for (std::int64_t i = 0; i < parts.count; ++i) {
          TrainBatch part = parts.count == 1 ? batch
                                             : batch_traits<TrainBatch>::narrow(
                                                   batch, parts.begin(i), parts.size(i));
          pass(part);
        }
        done = true;
      } catch (...) {
        split.shrink(Phase<Context>(run_), samples);
      }
      // Behind the handler: the error may hold on to tensors.
      if (!done) {
        start_.put_back(run_);
        undone();
      }
    }
  }

  auto memory_limit() {
    if constexpr (probes) {
      return engine_.template state<kinds::auto_batch>().limit();
    } else {
      return 0;
    }
  }

  void undo() {
    Undo<Context> phase(run_);
    engine_.template emit<on::undo>(phase);
  }

  /// Steps that are made and undone tell how large a micro-batch may be.
  void find_micro_batch() {
    auto& split = engine_.template state<kinds::accumulate>();
    if (split.known()) return;
    auto& prober = engine_.template state<kinds::auto_batch>();
    train_.seek(place());
    auto const batch = largest_batch(train_, prober.look());
    train_.seek(place());
    if (!batch) return;
    std::int64_t const samples = batch_traits<TrainBatch>::samples(*batch);
    std::int64_t found = 0;
    {
      TrialRewind<Context> rewind(run_);
      split.trying(true);
      auto const step = [&](std::int64_t each) {
        split.set(each);
        // Behind the second of its micro-batches a window needs no more memory.
        std::int64_t const some = std::min(samples, 2 * each);
        return try_step(batch_traits<TrainBatch>::narrow(*batch, 0, some));
      };
      found = prober.find(Phase<Context>(run_), samples, rewind.held(), step,
                          [&] { rewind.put_back(); });
      undo();
    }
    split.trying(false);
    split.set(found);
  }

  /// A step that is not counted and of which no observer hears. False if it was none.
  bool try_step(TrainBatch batch) {
    heed_interrupts();
    kept_.open();
    in_parts(
        batch,
        [this](TrainBatch& part) {
          batch_traits<TrainBatch>::place(part, run_.device);
          Loss loss = forward_pass(part, /*training=*/true);
          require_graph(loss.value, run_.counters);
          at::Tensor seed = window_.seed(loss);
          LossReady<Context> ready(run_, loss, seed);
          engine_.template emit_to_slots<on::loss>(ready);
          loss.value.backward(seed);
          window_.add(part, *loss.weight);
          kept_.add(loss);
        },
        [] {});
    kept_.keep(std::move(batch));
    run_.gradients.collect(run_.parameters);
    window_.settle(run_.gradients.tensors());
    Gradients<Context> gathered(run_);
    engine_.template emit_to_slots<on::gradients>(gathered);
    if constexpr (reevaluates) run_.window_loss = kept_.mean(window_.weight());
    Update<Context> phase(run_);
    engine_.template emit_to_slots<on::update>(phase);
    run_.gradients.clear();
    run_.parameters.reset_gradients();
    return !std::exchange(run_.overflow.skip, false);
  }

  /// The same with Graph. Its batches are read first: a window is replayed as a whole or not.
  bool train_captured_window() {
    std::vector<TrainBatch> batches;
    for (int k = 0; k < micro_batches; ++k) {
      auto batch = train_.next();
      if (!batch) break;
      batches.push_back(std::move(*batch));
    }
    if (batches.empty()) return false;
    auto& graph = engine_.template state<kinds::execution>();
    auto const pass = [this](TrainBatch const& batch, int times) {
      return capture_pass(batch, times);
    };
    window_.open();
    bool const replayed = graph.ready(run_, batches, train_, pass, [this] { update_weights(); });
    window_.open();
    bool step = false;
    if (replayed) {
      graph.replay(batches, [this](TrainBatch const& batch, at::Tensor const& loss, double weight) {
        run_.ledger.add(loss, weight, run_.counters);
        window_.add(batch, weight);
        ++run_.counters.micro_batch;
      });
      count_window();
      graph.tell_host();
      step = close_window();
    } else {
      graph.eagerly(run_, [&] {
        for (TrainBatch& batch : batches) train_micro_batch(batch);
        count_window();
        step = update();
        return window_.weight();
      });
    }
    if (step) tell<on::step, Step<Context>>();
    return true;
  }

  /// What a graph does with a micro-batch, and nothing that the host does. It stands for `times`.
  Loss capture_pass(TrainBatch const& batch, int times) {
    Loss loss = forward_pass(batch, /*training=*/true);
    require_graph(loss.value, run_.counters);
    window_.forget_seed();
    backward_pass(loss);
    window_.forget_seed();
    for (int k = 0; k < times; ++k) window_.add(batch, *loss.weight);
    Backward<Context> phase(run_);
    engine_.template emit<on::backward>(phase);
    return loss;
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
    batch_traits<TrainBatch>::place(batch, run_.device);
    Loss loss = forward_pass(batch, /*training=*/true);
    require_graph(loss.value, run_.counters);
    run_.ledger.add(loss.value, *loss.weight, run_.counters);
    backward_pass(loss);
    window_.add(batch, *loss.weight);
    kept_.add(loss);
    ++run_.counters.micro_batch;
    Backward<Context> phase(run_);
    engine_.template emit<on::backward>(phase);
  }

  void backward_pass(Loss& loss) {
    at::Tensor seed = window_.seed(loss);
    LossReady<Context> ready(run_, loss, seed);
    engine_.template emit<on::loss>(ready);
    detail::guarded("the backward pass", run_.counters, [&] { loss.value.backward(seed); });
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
    update_weights();
    return close_window();
  }

  void update_weights() {
    gather_gradients();
    if constexpr (reevaluates) run_.window_loss = kept_.mean(window_.weight());
    Update<Context> phase(run_);
    detail::guarded("the update", run_.counters, [&] { engine_.template emit<on::update>(phase); });
  }

  bool close_window() {
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
    auto const evaluate = [this](TrainBatch const& batch) {
      Loss loss = forward_pass(batch, /*training=*/true);
      loss.value.backward(window_.seed(loss));
      window_.add(batch, *loss.weight);
      kept_.add(loss);
    };
    if constexpr (splits) {
      auto const placed = [&](TrainBatch& part) {
        batch_traits<TrainBatch>::place(part, run_.device);
        evaluate(part);
      };
      in_parts(kept_.batches().front(), placed, [] {});
    } else {
      window_.open();
      kept_.reopen();
      for (TrainBatch const& batch : kept_.batches()) evaluate(batch);
    }
    gather_gradients();
    return run_.window_loss = kept_.mean(window_.weight());
  }

  flow validate() {
    if constexpr (validates) {
      ValidationRun<Context> phase(run_);
      [[maybe_unused]] KeepGenerators<interruptible> generators(run_.device);
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
  Window<splits ? 0 : micro_batches> window_;
  [[no_unique_address]] std::conditional_t<splits, WindowStart, Unsplit> start_;
  bool stopped_ = false;
  [[no_unique_address]] KeptWindow<TrainBatch, reevaluates> kept_;
};

}  // namespace detail

}  // namespace frugal
