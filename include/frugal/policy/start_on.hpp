// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <string>

#include <frugal/core/compose/about.hpp>
#include <frugal/core/compose/policy.hpp>
#include <frugal/core/run/durations.hpp>
#include <frugal/core/run/phases.hpp>
#include <frugal/core/run/settings.hpp>
#include <frugal/policy/kinds.hpp>
#include <frugal/policy/options.hpp>

namespace frugal {

struct Cpu {};

namespace detail {

namespace option {

struct start {
  template <class O>
  static constexpr bool has = std::same_as<O, Cpu>;
};
struct early_phase {
  template <class O>
  static constexpr bool has = is_early_phase<O>;
};

}  // namespace option

/// Advice from the seconds of a step on the CPU and on the device; empty if neither is much faster.
std::string judge_start(double on_cpu, double on_device, std::uint64_t steps);

}  // namespace detail

/// Trains the first epochs or steps on the CPU, and the rest on the device: the same run.
///
/// Lever   price per hour: most failures happen in the first epoch, which needs no GPU. For
///         pipelines that are small enough for a CPU.
/// Cost    the early phase at the CPU's speed; once a copy of the state. No host sync in a step.
/// State   whether the run has moved. It survives a resume, and so does the moment of the move:
///         a run may be resumed before or after it.
/// Errors  DeviceError before the first step if the device is not available.
///
/// Batches, schedule, counters and every policy's state continue. Floating-point sums
/// differ between a CPU and a GPU in their last bits, and dropout draws from the device's own
/// generator once the run is there; `fit` has seeded that from Settings::seed.
///
/// Options, in any order: Cpu, and Epochs<1> or Steps<N>.
template <class... Options>
struct StartOn {
 private:
  using classes = list<detail::option::start, detail::option::early_phase>;
  static_assert(detail::options_known<classes, Options...>,
                "frugal: StartOn<...>: unknown option. Options: Cpu, and Epochs<N> or Steps<N>. "
                "Write StartOn<Cpu, Epochs<1>> or StartOn<Cpu, Steps<100>>.");
  static_assert(detail::options_unique<classes, Options...>,
                "frugal: StartOn<...>: the same option twice. Write StartOn<Cpu, Epochs<1>> or "
                "StartOn<Cpu, Steps<100>>.");
  static_assert((false || ... || std::same_as<Options, Cpu>),
                "frugal: StartOn needs the device on which the run starts. Write StartOn<Cpu, "
                "Epochs<1>> or StartOn<Cpu, Steps<100>>.");
  using Until = detail::option_of<detail::option::early_phase, Epochs<1>, Options...>;

 public:
  FRUGAL_DIAGNOSTIC(
      and_auto_batch,
      "frugal: AutoBatch measures the memory of the device on which the run starts, "
      "and StartOn moves the run to another device. Write Accumulate<Auto>{.samples = "
      "N} instead of AutoBatch, or remove StartOn.");
  FRUGAL_DIAGNOSTIC(and_graph,
                    "frugal: CudaGraph captures steps on one device, and StartOn starts the run on "
                    "another. Remove one of them.");

  using kind = kinds::start_on;
  using listens =
      list<on::module, on::fit_begin, on::ready, on::window, on::epoch_end, on::fit_end>;
  using conflicts =
      list<conflict<kinds::auto_batch, and_auto_batch>, conflict<kinds::execution, and_graph>>;

  static constexpr About about{Term::price_per_hour,
                               "the early phase at the CPU's speed, and once a copy of the state"};

  std::uint64_t until = Until::count;  ///< complete epochs or steps, as the type says

  class State {
   public:
    // The counters imply it, so a run may be resumed with StartOn or without.
    using dispensable = void;

    explicit State(StartOn const& settings) : until_(settings.until) {}

    void on_fit_begin(FitBegin& phase) {
      detail::counted(until_, "StartOn::until");
      if (!phase.settings().device.is_cpu()) return;
      phase.warn("StartOn<Cpu> does nothing: the run's device is the CPU (Settings::device)");
    }

    void on_epoch_end(EpochEnd& phase) {
      // The epoch's losses have been read, so no device work is pending.
      if (!moved_at_ || judged_ || phase.counters().step == moved_at_->step) return;
      judged_ = true;
      double const here = since(*moved_at_, {phase.counters().step, phase.seconds()});
      if (moved_at_->step == began_at_->step) return;
      std::string const advice = detail::judge_start(since(*began_at_, *moved_at_), here,
                                                     moved_at_->step - began_at_->step);
      if (!advice.empty()) phase.warn(advice);
    }

    void on_fit_end(FitEnd& phase) {
      if (!moved_at_ && !phase.settings().device.is_cpu()) {
        phase.warn("StartOn<Cpu>: the run ended before it moved to " +
                   phase.settings().device.str() + ", and its module is on the CPU");
      }
    }

    static void on_module(ModuleSetup& phase) { phase.begin_on(c10::kCPU); }

    // A resumed run that had moved returns to the device before it completes an interrupted event.
    void on_ready(Ready& phase) {
      if (moved_ && is_due(phase)) move(phase);
    }
    void on_window(WindowBegin& phase) {
      if (is_due(phase)) move(phase);
    }

    template <class Archive>
    void persist(Archive& archive) {
      archive("moved", moved_);
      // Rollback may restore a state from before the move; the run stays on its device.
      if (Archive::loading && moved_at_) moved_ = true;
    }

   private:
    bool is_due(CheckpointPhase const& phase) {
      if (moved_at_ || phase.settings().device.is_cpu()) return false;
      if (!began_at_) began_at_ = {phase.counters().step, phase.seconds()};
      return moved_ || Until::over(phase.counters(), until_);
    }
    template <class Moving>
    void move(Moving& phase) {
      moved_ = true;
      moved_at_ = {phase.counters().step, phase.seconds()};
      phase.record({"move", {{"to", phase.settings().device.str()}}});
      phase.move_to(phase.settings().device);
    }

    struct Moment {
      std::uint64_t step;
      double seconds;
    };
    static double since(Moment const& from, Moment const& to) {
      return (to.seconds - from.seconds) / static_cast<double>(to.step - from.step);
    }

    std::uint64_t until_;
    bool moved_ = false;
    bool judged_ = false;
    std::optional<Moment> began_at_;  // in this process
    std::optional<Moment> moved_at_;  // likewise
  };
};

}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/policy/start_on.ipp>
#endif
