// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <frugal/core/compose/outcome.hpp>
#include <frugal/core/compose/watching.hpp>
#include <frugal/core/libtorch/generators.hpp>
#include <frugal/core/libtorch/quietly.hpp>
#include <frugal/core/loop/interruption.hpp>
#include <frugal/core/loop/window.hpp>
#include <frugal/core/measure/measure.hpp>
#include <frugal/core/measure/valid_sources.hpp>
#include <frugal/core/run/failure.hpp>
#include <frugal/core/run/phases.hpp>
#include <frugal/core/run/recipe_traits.hpp>
#include <frugal/core/run/run.hpp>
#include <frugal/core/run/run_snapshot.hpp>
#include <frugal/core/run/run_state.hpp>
#include <frugal/core/source/data_identity.hpp>
#include <frugal/core/source/source.hpp>
#include <frugal/core/state/module_tensors.hpp>
#include <frugal/core/state/state_dict.hpp>
#include <frugal/core/state/state_reader.hpp>
#include <frugal/core/state/state_writer.hpp>

namespace frugal::detail {

/// Moves a run to another device between two windows: the module, and everything in persist().
///
/// It is a resume without a file: saves every state that a checkpoint would hold, moves the module,
/// and loads the states back with their tensors on the new device. So a policy that supports
/// resuming also supports moving, without code of its own. A State that reads a loss or a flag from
/// the device to save it waits for the device here.
///
/// State that is not persisted must last for one step at most, or check the device where it uses
/// its tensors: gradients and the overflow flag end with their window, and the loop's constants
/// compare devices.
template <class Run>
void move_run(Run& run, c10::Device to) {
  at::NoGradGuard const no_gradients;
  StateDict state;
  StateWriter writer(state, CopyTarget::none);
  run.persist(writer);
  writer.finish();
  run.root.to(to);
  run.device = to;
  run.window.forget_overflow();
  StateReader reader(state, to);
  run.persist(reader);
}

/// The part of the loop that a dry run uses.
class DryRunBatches {
 public:
  /// The result of one batch.
  struct Outcome {
    std::string shapes;
    double loss = 0;
  };
  virtual void seek_to(Cursor const& where) = 0;
  /// Forward and backward passes of the next batch; nothing if there is none.
  virtual std::optional<Outcome> pass_next() = 0;

 protected:
  DryRunBatches() = default;
  DryRunBatches(DryRunBatches const&) = default;
  DryRunBatches& operator=(DryRunBatches const&) = default;
  ~DryRunBatches() = default;
};

/// The CPU, or the only device on which a module computes (StaysOnDevice).
c10::Device dry_run_device(torch::nn::Module const& module);

/// A dry run: a few batches forward and backward, and a checkpoint's round trip. Then everything is
/// restored: parameters, buffers, gradients, generator, device, source position.
class DryRunner {
 public:
  explicit DryRunner(RunState& run) : run_(run) {}

  std::vector<Check> run(DryRunBatches& source, std::size_t batches);

 private:
  std::vector<Check> on_its_device(DryRunBatches& source, std::size_t batches);

  std::vector<Check> passes(DryRunBatches& source, std::size_t batches, Cursor start);

  /// Which parameters the last pass has given gradients.
  void look_at_gradients();

  Check gradients() const;

  Check round_trip();

  StateDict snapshot();
  template <class Archive>
  void visit(Archive& archive) {
    archive.scope("module", [&](auto& inner) {
      visit_tensors(run_.root,
                    // Not a reference: an archive that loads fills the handle.
                    // NOLINTNEXTLINE(performance-unnecessary-value-param)
                    [&](std::string const& name, at::Tensor tensor) { inner(name, tensor); });
    });
    archive.scope("run", [&](auto& inner) { run_.persist(inner); });
  }

  RunState& run_;
  std::vector<bool> reached_{};     ///< the parameter has a gradient
  std::vector<bool> not_finite_{};  ///< one that is infinite or no number
};

/// Moves a source to the run's place, which a checkpoint may have named.
template <class Source>
void seek_to_run(RunState const& run, Source& source) {
  Cursor const at = run.cursor();
  require_in_epoch(std::as_const(source), at);
  source.seek(at);
}

/// What phases request of the loop, which has the sources and the passes: a validation, a dry run,
/// the same window again, a move to another device. The phases decide when.
template <class Passes, class Executor, class Train, class Valid>
class FitOperations final : public LoopInterface, private DryRunBatches {
  using Context = typename Passes::Context;
  using Engine = typename Context::engine;
  using Strategy = strategy_of<typename Context::policies>;

 public:
  FitOperations(Run<Context>& run, Passes& passes, Executor& executor, Train& train,
                std::add_pointer_t<Valid> valid)
      : run_(run), passes_(passes), executor_(executor), train_(train), valid_(valid) {}

  bool validates() const override { return valid_ != nullptr; }

  flow validate() override {
    if constexpr (std::is_void_v<Valid>) {
      return flow::proceed;
    } else {
      if (valid_ == nullptr) return flow::proceed;
      UnfinishedValidation& here = run_.control.validation();
      // That of an earlier process, which a policy has interrupted.
      bool const is_left = here.measured && !run_.observed.validations().empty() &&
                           run_.observed.validations().back().step == run_.counters().step;
      if (!is_left) {
        // Who asks second for the same weights would make patience count them twice.
        if (run_.is_judged()) return last_verdict_;
        here = {};
        run_.observed.add_validation(measure_now(), run_.counters());
        here.measured = true;
      }
      Validated validated(run_, run_.observed.validations().back().metrics);
      flow const verdict = run_.engine->template emit_to_others<on::validated>(
          here.completed_by, here.current_subscriber, validated,
          [this](std::string_view kind) { run_.control.ask(End::stop, kind); });
      here = {};
      last_verdict_ = verdict;
      return verdict;
    }
  }

  std::vector<Check> dry_run(std::size_t batches) override {
    return DryRunner(run_).run(*this, batches);
  }

  at::Tensor reevaluate() override {
    if constexpr (traits_of<Context>::reevaluates) {
      return executor_.reevaluate();
    } else {
      return {};
    }
  }
  void finish_set_up() override {
    run_.set_up.restored();
    require_watched();
    try_validation(run_.set_up.take_validation_trial());
    executor_.set_up(train_, run_.cursor());
  }
  void move_to(c10::Device device) override { move_run(static_cast<RunState&>(run_), device); }
  void recorded(Event const& event) override {
    Recorded phase(run_, event);
    run_.engine->template emit<on::recorded>(phase);
  }
  void saved(std::filesystem::path const& folder, std::uint64_t step) override {
    Saved phase(run_, folder, step);
    run_.engine->template emit<on::saved>(phase);
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
  std::optional<std::int64_t> batch_size() const override {
    if constexpr (requires { std::as_const(train_).batch_size(); }) {
      return static_cast<std::int64_t>(std::as_const(train_).batch_size());
    } else {
      return std::nullopt;
    }
  }
  std::string validation_batch_sizes() const override {
    std::string text;
    if constexpr (!std::is_void_v<Valid>) {
      auto const add = [&text](auto const& source) {
        if (!text.empty()) text += ", ";
        if constexpr (requires { source.batch_size(); }) {
          text += std::to_string(source.batch_size());
        } else {
          text += "unknown";
        }
      };
      if (valid_ == nullptr) return text;
      if constexpr (is_valid_sources<Valid>) {
        valid_->each([&](auto const& one) { add(std::as_const(*one.source)); });
      } else {
        add(std::as_const(*valid_));
      }
    }
    return text;
  }
  std::optional<std::uint64_t> validation_batches() const override {
    if constexpr (is_valid_sources<Valid>) {
      return valid_ == nullptr ? std::nullopt : valid_->batches();
    } else if constexpr (SizedSource<Valid>) {
      if (valid_ != nullptr) return static_cast<std::uint64_t>(std::as_const(*valid_).batches());
    }
    return std::nullopt;
  }

 private:
  /// MetricError for a watched name that no metric has, where their members name them.
  void require_watched() const {
    using Watched = typename watching_of<typename Context::policies>::type;
    if constexpr (!std::is_void_v<Valid> &&
                  Watched::is_known_later(typename traits_of<Context>::metrics{})) {
      Metrics named;
      named.set(always_measured, 0);
      std::apply([&](auto const&... metric) { (named.set(name_of(metric), 0), ...); },
                 run_.metrics);
      Watched::each_watched([&](std::string_view name) { static_cast<void>(named[name]); });
    }
  }

  /// Measures a few batches of each validation source and forgets the results: shapes, types and
  /// metrics that do not fit are errors before the first step.
  void try_validation([[maybe_unused]] std::size_t batches) {
    if constexpr (!std::is_void_v<Valid>) {
      bool const trains = run_.control.stopped_by().empty() && run_.progress.has_steps_left();
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
        static_cast<void>(measure_sources({.batches = batches, .is_trial = true}));
      } catch (...) {
        quietly(restore);
        throw;
      }
      restore();
      seek_back();
    }
  }

  /// A preemption ends a measurement before its next batch, and a trial not.
  Metrics measure_sources(Measuring how) {
    auto const forward = [&](auto const& batch) {
      if (!how.is_trial) throw_if_preempted(run_);
      return passes_.forward(batch, /*training=*/false);
    };
    using Measured = typename traits_of<Context>::metrics;
    if constexpr (is_valid_sources<Valid>) {
      return measure_each(*valid_, [&](auto& source, std::string const& which) {
        how.which = which;
        return measure<Measured, Strategy>(source, run_, forward, how, run_.metrics);
      });
    } else {
      return measure<Measured, Strategy>(*valid_, run_, forward, how, run_.metrics);
    }
  }

  /// A validation on the training source itself has moved its position.
  void seek_back() {
    void const* const train = address_of(train_);
    bool moved = static_cast<void const*>(valid_) == train;
    if constexpr (is_valid_sources<Valid>) moved = valid_->has(train);
    if (moved) seek_to_run(run_, train_);
  }

  Metrics measure_now() {
    ValidationRun phase(run_);
    bool const may_be_left = Engine::template has_subscribers<query::stop_requested> ||
                             run_.settings.stop.stop_possible();
    // Run again after an interruption, it must draw the same random numbers.
    GeneratorStates generators;
    if (may_be_left) generators.take(run_.device);
    auto body = [&] { return measure_sources({.errors = Strategy::metric_errors}); };
    Metrics metrics;
    try {
      metrics = run_.engine->template surround<around::validate>(phase, body);
    } catch (Interrupted const&) {
      generators.restore();
      throw;
    }
    seek_back();
    return metrics;
  }

  void seek_to(Cursor const& where) override { train_.seek(where); }
  std::optional<Outcome> pass_next() override {
    begin_window(train_);
    auto batch = train_.next();
    if (!batch) return std::nullopt;
    Outcome outcome{.shapes = batch_text(*batch)};
    throw_if_preempted(run_);
    batch_to(*batch, run_.device);
    Loss loss = passes_.forward(*batch, /*training=*/true);
    require_graph(loss, run_.counters());
    double const value = loss.value.template item<double>();
    // A mean over nothing: training reads neither it nor its gradient.
    if (*loss.weight == 0 && !std::isfinite(value)) return outcome;
    backward(loss, at::ones_like(loss.value), 1.0);
    outcome.loss = value;
    return outcome;
  }

  Run<Context>& run_;
  Passes& passes_;
  Executor& executor_;
  Train& train_;
  std::add_pointer_t<Valid> valid_;
  flow last_verdict_ = flow::proceed;  ///< of the last validation in this process
};

}  // namespace frugal::detail

#ifndef FRUGAL_COMPILED
#include <frugal/core/loop/fit_operations.ipp>
#endif
