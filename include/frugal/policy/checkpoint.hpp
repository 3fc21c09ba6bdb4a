// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/record_function.h>

#include <atomic>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <frugal/base/wall_clock.hpp>
#include <frugal/core/compose/about.hpp>
#include <frugal/core/compose/composition.hpp>
#include <frugal/core/compose/policy.hpp>
#include <frugal/core/compose/recipe_facts.hpp>
#include <frugal/core/compose/watching.hpp>
#include <frugal/core/run/judged.hpp>
#include <frugal/core/run/phases.hpp>
#include <frugal/core/run/run_limits.hpp>
#include <frugal/core/run/run_state.hpp>
#include <frugal/core/run/services.hpp>
#include <frugal/core/state/cut_tensors.hpp>
#include <frugal/core/state/module_tensors.hpp>
#include <frugal/core/state/state_dict.hpp>
#include <frugal/core/state/state_writer.hpp>
#include <frugal/policy/checkpoint/find.hpp>
#include <frugal/policy/checkpoint/interrupt.hpp>
#include <frugal/policy/checkpoint/interval.hpp>
#include <frugal/policy/checkpoint/marks.hpp>
#include <frugal/policy/checkpoint/options.hpp>
#include <frugal/policy/checkpoint/saved_recipe.hpp>
#include <frugal/policy/checkpoint/saver.hpp>
#include <frugal/policy/kinds.hpp>

namespace frugal {

namespace detail {

/// What a run of this length does not come to with KeepEvery<every>; empty if there is nothing to say.
std::string kept_outlook(std::uint64_t every, RunLimits const& horizon);

}  // namespace detail

/// Saves the run at a cadence. A run that is started again resumes from the newest complete
/// checkpoint, and ends bitwise identical to an uninterrupted one, however often it was killed.
///
/// Lever   price per hour: machines that vanish cost minutes, not the run.
/// Cost    between saves a comparison of a counter and a read of a flag; at a save all of the
///         writing, or with Async a copy of the state into host memory, which is kept for the next.
/// State   saves module, optimizer, schedule, counters, generators, the data's cursor and every
///         policy's state. Its own are the best metrics so far and the number of failed saves.
/// Errors  SettingsError without Settings::run_dir; LockError while another trainer works there;
///         StateError for a checkpoint of another run, naming the first difference; StoreError
///         when it cannot be written (see on_failure); NonFiniteWeightsError for weights or moments
///         that are NaN or infinite, of which it writes nothing.
/// Source  commits after Pillai et al., "All File Systems Are Not Created Equal" (OSDI 2014);
///         Every<Auto> after Young (1974) and Daly (2006).
///
///     Checkpoint<Every<500>, Keep<3>, Async>
template <class... Options>
struct Checkpoint {
  using options = detail::CheckpointOptions<Options...>;
  static_assert(options::known,
                "frugal: Checkpoint<...>: unknown option. Options: Every, Keep, KeepBest, "
                "KeepEvery, Async, WeightsIn.");
  static_assert(options::unique,
                "frugal: Checkpoint<...>: the same option twice. Keep one cadence, one Keep, one "
                "KeepEvery, one Async and one WeightsIn; only KeepBest may be repeated.");
  FRUGAL_DIAGNOSTIC(half_and_audit,
                    "frugal: WeightsIn<...> rounds the saved weights, which Audit<BitExact> rules "
                    "out. Remove WeightsIn or Audit.");

  FRUGAL_DIAGNOSTIC(
      without_metric,
      "frugal: KeepBest watches a metric that this recipe does not measure; the compiler's note "
      "names it. Add the metric to "
      "Validate, as in Validate<Accuracy>, or keep the best by the loss with KeepBest<WatchLoss>.");

  using kind = kinds::checkpoint;
  using listens = list<on::fit_begin, on::step, on::validated, on::epoch_end, query::stop_requested,
                       on::preempt, on::fit_end>;
  using provides = list<service::save>;
  using best_counts = std::remove_const_t<decltype(options::best)>;
  using watches = typename options::template watches<without_metric>;
  using conflicts =
      std::conditional_t<options::half, list<conflict<kinds::audit, half_and_audit>>, list<>>;

  static constexpr About about{Term::price_per_hour, options::cost()};

  [[no_unique_address]] typename options::cadence every{};
  std::size_t keep = options::keep;           ///< the newest ones
  std::uint64_t keep_every = options::every;  ///< 0: no step is kept for ever
  best_counts keep_best = options::best;      ///< for each KeepBest, in their order
  Resume resume = Resume::Exact;
  /// A run directory or a checkpoint's; with Resume::Weights also a .safetensors file. Empty:
  /// Settings::run_dir. It is for the first start alone: a run with a checkpoint of its own continues
  /// from that, unless `from` is one of its own.
  std::filesystem::path from{};
  /// With Resume::Exact, if `from` is not the newest checkpoint of this run.
  OnNewer on_newer = OnNewer::Refuse;
  /// With Resume::Weights: which ones of a checkpoint with averages.
  Weights weights = Weights::validated;
  /// With Resume::Exact: use of a checkpoint that another recipe has saved.
  ChangedRecipe changed_recipe = ChangedRecipe::Refuse;
  /// With KeepWhatFits: kinds, such as "Schedule", whose state starts fresh where it does not fit.
  std::vector<std::string> start_fresh{};
  /// With Resume::Exact: what of the training data may differ from the checkpoint's, by the names
  /// that the refusal gives, such as "window".
  std::vector<std::string> changed_data{};
  OnFailure on_failure = OnFailure::Stop;
  OnInterrupt on_interrupt = OnInterrupt::Save;
  double share = 0.035;  ///< Every<Auto>: share of the time that stalls may take
  /// Every<Auto>: mean lifetime of a machine, in seconds. If set, the interval is Daly's.
  std::optional<double> machine_lifetime{};

  /// What a run of this length does not come to; empty if there is nothing to say.
  std::string outlook(RunLimits const& horizon) const {
    return detail::kept_outlook(keep_every, horizon);
  }

  class OfRun;
  template <class Context>
  class State;
};

/// What it does in a run, of whichever recipe.
template <class... Options>
class Checkpoint<Options...>::OfRun {
  using Clock = WallClock;
  using Cadence = typename options::cadence;
  static constexpr bool by_counts = detail::Interval<Cadence>::by_counts;
  static constexpr std::string_view failed_to_begin = "failed: ";

 public:
  /// `recipe` has the name of the policy in each slot; `moves` is true where a run begins on another device.
  OfRun(Checkpoint const& settings, RecipeFacts const& facts, detail::Slots recipe, bool moves)
      : in_ranks_(facts.divides),
        moves_(moves),
        recipe_(std::move(recipe)),
        resume_(settings.resume),
        on_interrupt_(settings.on_interrupt),
        share_(settings.share),
        machine_lifetime_(settings.machine_lifetime),
        every_(settings.every),
        retention_(options::retention(settings.keep, settings.keep_every, settings.keep_best)),
        best_(retention_.best),
        interval_(settings.every, settings.share, settings.machine_lifetime, settings.keep_every),
        saver_({.resume = settings.resume,
                .rules = {settings.changed_recipe, settings.start_fresh, settings.changed_data},
                .from = settings.from,
                .on_newer = settings.on_newer,
                .which = settings.weights,
                .on_failure = settings.on_failure,
                .retention = retention_,
                .async = options::async,
                .weights = options::weights}) {}

  void on_fit_begin(FitBegin& phase) {
    RunState& run = phase.run_state();
    detail::require_checkpoint_settings(run.settings, retention_, share_, machine_lifetime_);
    follows_ = in_ranks_ && !phase.is_first();
    std::string const outlook = detail::kept_outlook(retention_.every, run.progress.horizon());
    if (!outlook.empty()) run.observed.warn_of_plan("Checkpoint: " + outlook);
    if (on_interrupt_ == OnInterrupt::Save) interrupt_.take();
    // The step looks at nothing but the counter, so a failure makes the counter due.
    begin(phase);
    if (!follows_) interval_.begin(run.counters(), Clock::now());
    // A run that is killed before its first cadence resumes from here. The save also measures what one
    // costs. Processes with parts of the module make its forward passes together.
    if (!follows_ || saves_together(phase)) phase.finish_set_up();
    if (agree(phase, !follows_ && !saver_.has_saved_any())) save_here(phase);
    if (follows_) return;
    if (run.progress.resumed() && !retention_.best.empty()) {
      best_.reset_to(saver_.metrics_on_disk());
    }
    next_check_step_ = interval_.next_look();
  }

  void on_step(Step& phase) {
    if (saves_together(phase)) return on_step_together(phase);
    if (follows_) return;
    bool due = false;
    if constexpr (by_counts) due = every_.due_at_step(phase.counters());
    if (!due && phase.counters().step < next_check_step_.load(std::memory_order_relaxed)) [[likely]]
      return;
    RunState& run = phase.run_state();
    due = interval_.look(run.counters(), Clock::now());
    next_check_step_ = interval_.next_look();
    saver_.beat(run);
    report_failure(run);
    if (due || best_.improved()) begin_save(phase);
  }

  void on_validated(Validated& phase) {
    validated_ = true;
    if (!follows_ && best_.look(phase.metrics)) next_check_step_ = 0;
  }

  void on_epoch_end(EpochEnd& phase) {
    if (follows_ && !saves_together(phase)) return;
    RunState& run = phase.run_state();
    if (!follows_) report_failure(run);
    bool const due = every_.due_at_epoch_end(run.counters()) || best_.improved();
    if (agree(phase, due)) begin_save(phase);
  }

  void on_fit_end(FitEnd& phase) {
    RunState& run = phase.run_state();
    if (!follows_ || saves_together(phase)) {
      if (!phase.preempted() && agree(phase, !saver_.has_saved(run))) begin_save(phase);
      if (!follows_) finish(run);
    }
    // No process leaves before the checkpoint is on disk.
    if (in_ranks_) {
      // After a preemption save() has said it, and another process may have been taken away since.
      if (!phase.preempted()) run.control.set_unsaved(phase.from_first(run.control.unsaved()));
    }
    // Every display has ended its line by now.
    if (interrupt_.requested()) {
      phase.interrupted_by_user();
      detail::report_interrupted(run, /*has_begun=*/true);
    }
  }

  /// Whether the user pressed Ctrl-C.
  bool stop_requested(Phase const&) const { return interrupt_.requested(); }

  void on_preempt(Preemption& phase) {
    if (!interrupt_.requested()) return;
    phase.interrupted_by_user();
    if (phase.has_begun) {
      phase.record({"preempted", {{"by", "Ctrl-C"}, {"save_seconds", phase.seconds_of_save}}});
    } else {
      detail::report_interrupted(phase.run_state(), /*has_begun=*/false);
    }
  }

  /// Saves this moment, and returns when the checkpoint is on disk; false if it failed and the run
  /// continues. Throws the failure of this save, or of the one before.
  bool save(CheckpointPhase& phase) {
    if (!in_ranks_) return save_here(phase);
    bool const saved = (!follows_ || saves_together(phase)) && save_here(phase);
    RunState& run = phase.run_state();
    std::string const here = saved ? "saved" : run.control.unsaved();
    std::string const text =
        run.together.first_says ? run.together.first_says(here) : phase.from_first(here);
    if (text != "saved") run.control.set_unsaved(text);
    return text == "saved";
  }

  /// Seconds from the beginning of the last save until it was on disk.
  double save_seconds() const { return saver_.seconds(); }

  template <class Archive>
  void persist(Archive& archive) {
    if (Archive::loading) {
      // A resume or a Rollback has changed the run: no save contains this moment.
      saver_.forget_last();
      next_check_step_ = 0;
    }
    best_.persist(archive);
    saver_.persist(archive);
  }

 private:
  /// Opens the folder, and resumes. Of several processes the first one has the folder, its lock and
  /// its files; the others resume as it does.
  void begin(FitBegin& phase) {
    RunState& run = phase.run_state();
    auto const begin_here = [&] {
      saver_.begin(run, std::move(recipe_), moves_, [this] { next_check_step_ = 0; });
    };
    if (!in_ranks_) {
      begin_here();
    } else if (follows_) {
      std::string const text = phase.from_first({});
      if (text.starts_with(failed_to_begin)) {
        throw ClusterError({.what = "the first process could not begin",
                            .where = "Checkpoint",
                            .why = text.substr(failed_to_begin.size()),
                            .fix = "Do what its own error says, and start all again."});
      }
      saver_.share(run, [] {});
      require_one_folder(phase);
      saver_.follow(run, std::move(recipe_), moves_, text);
    } else {
      try {
        begin_here();
      } catch (std::exception const& error) {
        phase.from_first(std::string(failed_to_begin) + error.what());
        throw;
      }
      phase.from_first(saver_.beginning(run));
      saver_.share(run, {});
      require_one_folder(phase);
    }
  }
  /// Where the first process writes whole checkpoints, the others read them when the run resumes. That is
  /// asked now, and not then.
  void require_one_folder(FitBegin const& phase) const {
    RunState const& run = phase.run_state();
    if (resume_ == Resume::Never || run.together.board || phase.processes().count == 1) return;
    std::optional<detail::SeenFile> file;
    if (!follows_) file.emplace(run.settings.run_dir);
    std::string const text = phase.from_first(file ? file->text() : std::string());
    bool const sees = file || detail::SeenFile::is_seen(run.settings.run_dir, text);
    if (phase.reduce(Quantity::stop, sees ? 0.0 : 1.0) == 0) return;
    throw ClusterError(
        {.what = std::string(sees ? "another process does not see" : "this process does not see") +
                 " the run directory as the first one has it",
         .where = "Checkpoint, " + run.settings.run_dir.string(),
         .why =
             "the first process writes the checkpoints there, and all of them read them when the "
             "run resumes",
         .fix = "Give all of them one folder on a file system that they share, or set "
                "Checkpoint::resume to Resume::Never for a run that will not resume."});
  }

  bool save_here(CheckpointPhase& phase) {
    RunState& run = phase.run_state();
    if (agree(phase, !saver_.has_saved(run))) begin_save(phase);
    if (follows_) return false;
    finish(run);
    return saver_.has_saved(run);
  }

  /// Whether processes hold parts of what is saved, so that all of them take part in a save.
  bool saves_together(CheckpointPhase const& phase) const {
    return in_ranks_ && phase.run_state().together.by_all();
  }
  /// What the first process answers, if all take part.
  bool agree(CheckpointPhase& phase, bool here) {
    if (!saves_together(phase)) return here;
    // What the save before has thrown must not come when the others wait for this process.
    if (!follows_ && here) saver_.settle(phase.run_state());
    return phase.from_first(here ? "save" : "") == "save";
  }
  void on_step_together(Step& phase) {
    bool due = false;
    if constexpr (!detail::Interval<Cadence>::timed && !Cadence::per_epoch) {
      due = every_.due_at_step(phase.counters());
    }
    // The processes know the counters and when a validation was, and only the first one its clock.
    due = due || interval_.is_kept(phase.counters());
    bool const asks = detail::Interval<Cadence>::timed || due || std::exchange(validated_, false);
    if (!follows_ && (due || phase.counters().step >= next_check_step_)) {
      RunState& run = phase.run_state();
      due = interval_.look(run.counters(), Clock::now()) || due;
      next_check_step_ = interval_.next_look();
      saver_.beat(run);
      report_failure(run);
    }
    if (asks && agree(phase, due || best_.improved())) begin_save(phase);
  }

  void begin_save(CheckpointPhase& phase) {
    // Profile shows the time of a save; without a profiler this is one look at a thread's variable.
    RECORD_USER_SCOPE("frugal::checkpoint");
    RunState& run = phase.run_state();
    // At a cadence of time each process saves at its own moment, so they cannot agree.
    if constexpr (by_counts) phase.read_losses();
    ++run.together.begun;
    if (follows_) {
      if (saver_.is_shared()) return saver_.save_part(run);
      return give_parts(run);
    }
    // Any save includes the weights of the last improvement: a second save of these would evict
    // another checkpoint.
    auto const begins = [this] {
      settle_best();  // according to the save before this one
      best_.begin_save();
    };
    if (auto const cost = saver_.save(run, begins)) interval_.saved(*cost, Clock::now());
    if constexpr (!options::async) {
      settle_best();
      tell_saved(run);
    }
  }

  /// The part of a save in a process that is not the first, if that one writes all.
  static void give_parts(RunState& run) {
    StateDict scratch;
    StateWriter writer(scratch, CopyTarget::live);
    writer.whole = run.together.whole_tensor;
    // In the order of the first process: weights, then States.
    detail::visit_tensors(run.root, [&](std::string const& name, at::Tensor const& tensor) {
      if (auto const held =
              run.together.held_parts ? run.together.held_parts(tensor) : std::nullopt) {
        writer.part(name, held->mine, held->which);
      } else if (auto const part = part_of(tensor)) {
        writer.part(name, tensor, *part);
      }
    });
    run.persist(writer);
  }

  void report_failure(RunState& run) {
    saver_.report_failure(run);
    if (saver_.take_failed()) best_.not_saved();
    tell_saved(run);
  }
  void finish(RunState& run) {
    saver_.finish(run);
    settle_best();
    tell_saved(run);
  }
  void tell_saved(RunState& run) {
    for (auto const& [folder, step] : saver_.take_written()) {
      run.links.loop()->saved(folder, step);
    }
  }
  /// Call it while nothing is being written.
  void settle_best() {
    if (saver_.take_failed()) {
      best_.not_saved();
    } else {
      best_.saved();
    }
  }

  bool in_ranks_;
  bool moves_;
  detail::Slots recipe_;
  Resume resume_;
  OnInterrupt on_interrupt_;
  double share_;
  std::optional<double> machine_lifetime_;
  [[no_unique_address]] Cadence every_;
  Retention retention_;
  detail::InterruptSignal interrupt_;
  detail::BestSoFar best_;
  detail::Interval<Cadence> interval_;
  std::atomic<std::uint64_t> next_check_step_{0};
  bool validated_ = false;  // since the last step
  bool follows_ = false;    // a process that is not the first of its run
  detail::Saver saver_;     // last: its thread sets next_check_step_
};

template <class... Options>
template <class Context>
class Checkpoint<Options...>::State : public OfRun {
  using Policies = typename Context::policies;

 public:
  State(Checkpoint const& settings, RecipeFacts const& facts)
      : OfRun(settings, facts, detail::slots_of(Policies{}, facts),
              detail::has<kinds::start_on, Policies>) {}
};

}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/policy/checkpoint.ipp>
#endif
