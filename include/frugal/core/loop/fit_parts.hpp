// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <frugal/core/compose/interrupted.hpp>
#include <frugal/core/libtorch/generators.hpp>
#include <frugal/core/libtorch/modes.hpp>
#include <frugal/core/libtorch/quietly.hpp>
#include <frugal/core/loop/consumed.hpp>
#include <frugal/core/loop/dry_run.hpp>
#include <frugal/core/loop/eager.hpp>
#include <frugal/core/loop/ends.hpp>
#include <frugal/core/loop/measure.hpp>
#include <frugal/core/loop/passes.hpp>
#include <frugal/core/loop/preemption.hpp>
#include <frugal/core/loop/recipe_traits.hpp>
#include <frugal/core/loop/valid_sources.hpp>
#include <frugal/core/run/failure.hpp>
#include <frugal/core/run/phases.hpp>
#include <frugal/core/run/run_limits.hpp>
#include <frugal/core/state/move.hpp>
#include <frugal/data/data_identity.hpp>
#include <frugal/data/source.hpp>

namespace frugal::detail {

/// The parts of a fit, and the operations that its phases request: a validation, a dry run, the
/// same window again, a move to another device. The loop decides when.
template <class Context, class Objective, class Train, class Valid>
class FitParts : public LoopInterface {
  using Engine = typename Context::engine;
  using WindowPasses = Passes<Context, Objective, Train>;

  template <class Service>
  static constexpr bool has = Engine::template provides<Service>;

 public:
  template <class Policies>
  FitParts(typename Context::module_type& module, Objective& objective, Settings const& settings,
           Policies const& policies, Train& train, std::add_pointer_t<Valid> valid)
      : train_(train),
        valid_(valid),
        engine_(policies),
        run_(module, settings, detail::horizon_of(settings, train, traits_of<Context>::batches)),
        passes_(run_, objective, train),
        executor_(passes_) {}

  /// Only the slots are set up: they have state to save, whereas observers would write files.
  std::vector<Check> set_up_and_dry_run(std::size_t batches) {
    run_.attach(engine_, *this);
    try {
      assemble();
      KeepModes const modes(run_.root);
      prepare();
      FitBegin<Context> phase(run_);
      engine_.template emit_to_slots<on::fit_begin>(phase);
      return dry_run(batches);
    } catch (c10::Error const& error) {
      return {{"set-up", false, error.what_without_backtrace()}};
    } catch (Interrupted const&) {
      return {{"time", false, run_.preempted_by + " asks to preempt the run"}};
    } catch (std::exception const& error) {
      return {{"set-up", false, error.what()}};
    }
  }

  /// Calls on_module, which may replace layers. Runs once, at the first call.
  void assemble() {
    if (std::exchange(assembled_, true)) return;
    ModuleSetup<Context> assembly(run_);
    engine_.template emit<on::module>(assembly);
    if constexpr (Engine::template has_subscribers<on::module>) {
      require_same_module(base_module(run_.module), run_.root);
      run_.parameters = Parameters::of(run_.root);
    }
  }

  bool validates() const override { return valid_ != nullptr; }

  flow validate() override {
    if constexpr (std::is_void_v<Valid>) {
      return flow::proceed;
    } else {
      if (valid_ == nullptr) return flow::proceed;
      run_.add_validation(measure_now());
      Validated<Context> validated(run_, run_.validations.back().metrics);
      return engine_.template emit<on::validated>(validated, stopper());
    }
  }

  std::vector<Check> dry_run(std::size_t batches) override {
    return DryRunner(run_).run({.seek = [this](Cursor const& where) { train_.seek(where); },
                                .next = [this] { return dry_run_batch(); }},
                               batches);
  }

  at::Tensor reevaluate() override {
    if constexpr (traits_of<Context>::reevaluates) {
      return executor_.reevaluate();
    } else {
      return {};
    }
  }
  void settle() override {
    try_validation(std::exchange(run_.validation_trial, 0));
    executor_.settle(train_, cursor());
  }
  void move_to(c10::Device device) override { move_run(run_, device); }
  void recorded(Event const& event) override {
    Recorded<Context> phase(run_, event);
    engine_.template emit<on::recorded>(phase);
  }
  std::optional<double> waited_for_data() const override {
    if constexpr (WaitedSource<Train>) {
      return std::as_const(train_).waited();
    } else {
      return std::nullopt;
    }
  }
  DataIdentity identify_data() const override {
    DataIdentity all = data_identity_of(train_);
    if constexpr (!std::is_void_v<Valid>) identify_validation(valid_, all);
    return all;
  }
  std::optional<std::uint64_t> validation_batches() const override {
    if constexpr (is_valid_sources<Valid>) {
      return valid_ == nullptr ? std::nullopt : valid_->batches();
    } else if constexpr (SizedSource<Valid>) {
      if (valid_ != nullptr) return static_cast<std::uint64_t>(std::as_const(*valid_).batches());
    }
    return std::nullopt;
  }

 protected:
  /// Puts the module on the device where the run begins.
  void prepare() {
    assemble();
    c10::Device start_device = run_.settings.device;
    if constexpr (has<service::start_device>) {
      start_device = engine_.template provider<service::start_device>().start_device(run_.settings);
    }
    detail::prepare(run_, start_device);
    // A source that copies ahead needs the target device.
    if constexpr (requires { train_.follow(run_.device); }) train_.follow(run_.device);
    if constexpr (requires { valid_->follow(run_.device); }) {
      if (valid_ != nullptr) valid_->follow(run_.device);
    }
  }

  Cursor cursor() const {
    return {run_.settings.seed, run_.counters.epoch, run_.counters.position};
  }

  /// Moves the source to the run's place, which a checkpoint may have named.
  void seek() {
    Cursor const at = cursor();
    require_in_epoch(std::as_const(train_), at);
    train_.seek(at);
  }

  /// Called for each policy that asks to stop.
  auto stopper() {
    return [this](std::string_view kind) {
      // Set now for a save within this event; asked_to_stop_ sets it again after the event, because
      // a resume within the event loads it.
      if (run_.stopped_by.empty()) run_.stopped_by = kind;
      if (asked_to_stop_.empty()) asked_to_stop_ = kind;
    };
  }

  Train& train_;
  std::add_pointer_t<Valid> valid_;
  Engine engine_;
  Run<Context> run_;
  WindowPasses passes_;
  [[no_unique_address]] executor_of<WindowPasses> executor_;
  bool assembled_ = false;
  std::string asked_to_stop_{};  ///< kind of the first policy that asked during the current event

 private:
  /// Measures a few batches of each validation source and forgets the results: shapes, types and
  /// metrics that do not fit are errors before the first step.
  void try_validation([[maybe_unused]] std::size_t batches) {
    if constexpr (!std::is_void_v<Valid>) {
      bool const trains = run_.stopped_by.empty() && run_.counters.epoch < run_.horizon.epochs &&
                          run_.counters.step < run_.horizon.steps;
      if (batches == 0 || valid_ == nullptr || !trains) return;
      GeneratorStates generators;
      BufferCopies buffers;
      generators.take(run_.device);
      buffers.take(run_.root);
      auto const restore = [&] {
        at::NoGradGuard const no_gradients;
        generators.restore();
        buffers.restore();
      };
      try {
        static_cast<void>(
            measure_sources({.batches = batches, .is_trial = true}, [](auto const&) {}));
      } catch (...) {
        quietly(restore);
        throw;
      }
      restore();
      seek_back();
    }
  }

  /// `before_batch(batch)` is called before each forward pass.
  template <class BeforeBatch>
  Metrics measure_sources(Measuring how, BeforeBatch&& before_batch) {
    auto const forward = [&](auto const& batch) {
      before_batch(batch);
      return passes_.forward(batch, /*training=*/false);
    };
    using Measured = typename traits_of<Context>::metrics;
    if constexpr (is_valid_sources<Valid>) {
      return measure_each(*valid_, [&](auto& source, std::string const& which) {
        how.which = which;
        return measure<Measured>(source, run_, forward, how);
      });
    } else {
      return measure<Measured>(*valid_, run_, forward, how);
    }
  }

  /// A validation on the training source itself has moved its position.
  void seek_back() {
    bool moved = static_cast<void const*>(valid_) == static_cast<void const*>(&train_);
    if constexpr (is_valid_sources<Valid>) moved = valid_->has(&train_);
    if (moved) seek();
  }

  Metrics measure_now() {
    ValidationRun<Context> phase(run_);
    bool const may_be_left = Engine::template has_subscribers<query::stop_requested> ||
                             run_.settings.stop.stop_possible();
    // Run again after an interruption, it must draw the same random numbers.
    GeneratorStates generators;
    if (may_be_left) generators.take(run_.device);
    // Processes that train together must all have the metric, or none.
    constexpr MetricErrors errors =
        traits_of<Context>::shares ? MetricErrors::thrown : MetricErrors::noted;
    auto body = [&] {
      return measure_sources({.errors = errors}, [this](auto const&) { throw_if_preempted(run_); });
    };
    Metrics metrics;
    try {
      metrics = engine_.template surround<around::validate>(phase, body);
    } catch (Interrupted const&) {
      generators.restore();
      throw;
    }
    seek_back();
    return metrics;
  }

  std::optional<DryRunBatches::Outcome> dry_run_batch() {
    auto batch = train_.next();
    if (!batch) return std::nullopt;
    DryRunBatches::Outcome outcome{.shapes = batch_text(*batch)};
    throw_if_preempted(run_);
    batch_to(*batch, run_.device);
    Loss loss = passes_.forward(*batch, /*training=*/true);
    require_graph(loss.value, run_.counters);
    double const value = loss.value.template item<double>();
    // A mean over nothing: training reads neither it nor its gradient.
    if (*loss.weight == 0 && !std::isfinite(value)) return outcome;
    loss.value.backward();
    outcome.loss = value;
    return outcome;
  }
};

}  // namespace frugal::detail
