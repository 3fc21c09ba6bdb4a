// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/Context.h>
#include <torch/csrc/autograd/variable.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <frugal/compose/interrupted.hpp>
#include <frugal/data/source.hpp>
#include <frugal/loop/captured_window.hpp>
#include <frugal/loop/ends.hpp>
#include <frugal/loop/failure.hpp>
#include <frugal/loop/fit_traits.hpp>
#include <frugal/libtorch/generators.hpp>
#include <frugal/loop/horizon.hpp>
#include <frugal/policy/kinds.hpp>
#include <frugal/loop/measure.hpp>
#include <frugal/loop/move.hpp>
#include <frugal/loop/passes.hpp>
#include <frugal/loop/phase.hpp>
#include <frugal/loop/rehearsal.hpp>
#include <frugal/loop/split_window.hpp>
#include <frugal/loop/report.hpp>

namespace frugal {

namespace detail {

/// Stands where a recipe whose windows are not split has nothing.
struct Unsplit {
  Unsplit(auto const&, auto const&) {}
};

/// One fit: the loop, from top to bottom. `Valid` is void when there is no validation data.
///
///     begin, for each epoch: { for each window: { for each micro-batch: forward, backward;
///     gradients, update, step }, epoch end }, end
template <class Context, class Objective, class Train, class Valid>
class Fit {
  using Module = typename Context::module_type;
  using Engine = typename Context::engine;
  using TrainBatch = batch_of<Train>;

  using Traits = FitTraits<typename Context::policies>;
  template <class Kind>
  using slot = typename Traits::template slot<Kind>;

  using passes = Passes<Context, Objective, TrainBatch>;
  using split_window =
      std::conditional_t<Traits::splits, SplitWindow<Context, Objective, TrainBatch>, Unsplit>;

  static constexpr bool validates = !std::is_void_v<Valid>;
  static constexpr bool rolls_back = Traits::rolls_back;
  static constexpr bool interruptible = Traits::interruptible;
  static constexpr bool starts_on_cpu = Traits::starts_on_cpu;

 public:
  template <class Policies>
  Fit(Module& module, Objective& objective, Settings const& settings, Policies const& policies,
      Train& train, std::add_pointer_t<Valid> valid)
      : train_(train),
        valid_(valid),
        engine_(policies),
        run_(module, settings, detail::horizon_of(settings, train, Traits::micro_batches)),
        passes_(run_, objective),
        split_(run_, passes_) {}

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
    return report_of(run_, spent.count());
  }

  /// Only the optimizer is set up: it has state to save, and observers would write files.
  std::vector<Check> rehearsal(std::size_t batches) {
    KeepModes const modes(run_.root);
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
    if constexpr (Traits::captures) slot<kinds::execution>::require(run_.settings.device);
    detail::prepare(run_, starts_on_cpu ? c10::Device(c10::kCPU) : run_.settings.device);
    // A source that copies ahead has to know where to.
    if constexpr (requires { train_.follow(run_.device); }) train_.follow(run_.device);
    if constexpr (requires { valid_->follow(run_.device); }) {
      if (valid_ != nullptr) valid_->follow(run_.device);
    }
    run_.attach(engine_);
    if constexpr (validates) run_.validate = [this] { return validate(); };
    if constexpr (Traits::saves) {
      run_.save = [this] {
        Resting<Context> phase(run_);
        return engine_.template state<kinds::checkpoint>().save(phase);
      };
      run_.save_seconds = [this] {
        return engine_.template state<kinds::checkpoint>().save_seconds();
      };
    }
    run_.rehearse = [this](std::size_t batches) { return rehearse(batches); };
    if constexpr (Traits::reevaluates) run_.reevaluate = [this] { return windows().reevaluate(); };
    if constexpr (Traits::probes) run_.settle = [this] { split_.probe(train_, place()); };
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
    Trained const trained = next_window();
    if (trained == Trained::a_step) tell<on::step, Step<Context>>();
    return trained != Trained::nothing;
  }

  /// What passes over a window once more.
  auto& windows() {
    if constexpr (Traits::splits) {
      return split_;
    } else {
      return passes_;
    }
  }

  Trained next_window() {
    if constexpr (Traits::captures) {
      return train_captured_window(run_, passes_, train_);
    } else if constexpr (Traits::splits) {
      return split_.train(train_);
    } else {
      return passes_.train_window(train_);
    }
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

  /// Passes over the batches of one window.
  bool skip_window() {
    std::uint64_t samples = 0;
    for (int k = 0; k < Traits::micro_batches; ++k) {
      auto batch = train_.next();
      if (!batch) break;
      samples += static_cast<std::uint64_t>(batch_traits<TrainBatch>::samples(*batch));
    }
    run_.counters.position += samples;
    return samples != 0;
  }

  flow validate() {
    if constexpr (validates) {
      ValidationRun<Context> phase(run_);
      [[maybe_unused]] KeepGenerators<interruptible> generators(run_.device);
      Metrics metrics = engine_.template surround<around::validate>(phase, [&] {
        using measured = typename slot<kinds::validate>::metrics;
        return detail::measure<measured>(*valid_, run_, [this](auto const& batch) {
          passes_.heed_interrupts();
          return passes_.forward(batch, /*training=*/false);
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
    return Rehearsal(run_).run({.seek = [this](Cursor const& where) { train_.seek(where); },
                                .next = [this] { return rehearse_batch(); }},
                               batches);
  }
  std::optional<RehearsedBatches::Outcome> rehearse_batch() {
    auto batch = train_.next();
    if (!batch) return std::nullopt;
    RehearsedBatches::Outcome outcome{.shapes = batch_text(*batch)};
    passes_.heed_interrupts();
    batch_traits<TrainBatch>::place(*batch, run_.device);
    Loss loss = passes_.forward(*batch, /*training=*/true);
    require_graph(loss.value, run_.counters);
    loss.value.backward();
    outcome.loss = loss.value.template item<double>();
    return outcome;
  }

  void end() {
    FitEnd<Context> phase(run_);
    engine_.template emit<on::fit_end>(phase);
  }

  void heed(flow verdict) { stopped_ = stopped_ || verdict == flow::stop; }
  auto who() {
    return [this](std::string_view kind) {
      if (run_.stopped_by.empty()) run_.stopped_by = kind;
    };
  }

  Train& train_;
  std::add_pointer_t<Valid> valid_;
  Engine engine_;
  Run<Context> run_;
  passes passes_;
  [[no_unique_address]] split_window split_;
  bool stopped_ = false;
};

}  // namespace detail

}  // namespace frugal
