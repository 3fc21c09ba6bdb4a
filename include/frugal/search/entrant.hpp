// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/base/wall_clock.hpp>
#include <frugal/core/compose/composition.hpp>
#include <frugal/core/compose/policy.hpp>
#include <frugal/core/compose/watching.hpp>
#include <frugal/core/compose/written_name.hpp>
#include <frugal/core/libtorch/out_of_memory.hpp>
#include <frugal/core/run/failure.hpp>
#include <frugal/core/run/judged.hpp>
#include <frugal/core/run/phases.hpp>
#include <frugal/core/run/recipe_traits.hpp>
#include <frugal/core/run/report.hpp>
#include <frugal/core/run/run_limits.hpp>
#include <frugal/error.hpp>
#include <frugal/model/save_weights.hpp>
#include <frugal/policy/checkpoint.hpp>
#include <frugal/policy/kinds.hpp>
#include <frugal/policy/recipe_name.hpp>
#include <frugal/policy/spot.hpp>
#include <frugal/policy/spot/signals.hpp>
#include <frugal/policy/watched.hpp>
#include <frugal/search/engine.hpp>
#include <frugal/search/job.hpp>
#include <frugal/search/job_identity.hpp>
#include <frugal/search/journal.hpp>
#include <frugal/search/results/winner_code.hpp>
#include <frugal/search/schedule/schedule.hpp>
#include <frugal/search/space.hpp>
#include <frugal/search/trials/ranking.hpp>
#include <frugal/trainer.hpp>

#include <torch/nn/module.h>
#include <torch/utils.h>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace frugal::detail {

/// Preempts a trial at the end of its rung, on SIGTERM, and when the budget is spent. search() adds it to every
/// recipe. It never shortens a run: the schedule of the learning rate sees the whole length, and the next rung
/// resumes exactly here.
struct SearchWatch {
  FRUGAL_DIAGNOSTIC(
      without_checkpoint,
      "frugal: a search needs Checkpoint: a trial that is promoted resumes from where it was. Add "
      "Checkpoint<Every<500>> to the policies of SearchJob.");

  using kind = kinds::search_watch;
  using needs = list<need<kinds::checkpoint, without_checkpoint>>;
  using listens = list<on::fit_begin, query::stop_requested>;

  RungUnit unit = RungUnit::steps;
  std::optional<std::uint64_t> until{};             ///< in that unit
  double seconds_per_unit = 1;                      ///< of seconds and cents
  std::function<bool()> const* is_spent = nullptr;  ///< whether the budget is; asked once a second
  PreemptionSignals const* signals = nullptr;
  bool* reached = nullptr;  ///< set when the rung is ended
  bool* begun = nullptr;    ///< set when the run has resumed, or begins

  class State {
   public:
    using transient = void;

    explicit State(SearchWatch const& watch) : watch_(&watch) {}

    /// Checkpoint is called before it.
    void on_fit_begin(FitBegin&) const {
      if (watch_->begun != nullptr) *watch_->begun = true;
    }

    bool stop_requested(Phase const& phase) const {
      if (watch_->until && is_reached(phase)) {
        *watch_->reached = true;
        return true;
      }
      if (watch_->is_spent != nullptr && WallClock::seconds() >= next_look_) {
        spent_ = spent_ || (*watch_->is_spent)();
        next_look_ = WallClock::seconds() + 1;
      }
      if (spent_) return true;
      return watch_->signals != nullptr && watch_->signals->requested();
    }

   private:
    bool is_reached(Phase const& phase) const {
      switch (watch_->unit) {
        case RungUnit::steps:
          return phase.counters().step >= *watch_->until;
        case RungUnit::samples:
          return phase.counters().sample >= *watch_->until;
        case RungUnit::seconds:
        case RungUnit::cents:
          break;
      }
      // A first rung that the set-up takes would judge the initial weights.
      return phase.counters().step != 0 &&
             phase.seconds() >= static_cast<double>(*watch_->until) * watch_->seconds_per_unit;
    }

    SearchWatch const* watch_;
    mutable double next_look_ = 0;
    mutable bool spent_ = false;
  };
};

/// The parts of a search that its trials need.
struct SearchContext {
  SearchSettings const* settings = nullptr;
  RungUnit unit = RungUnit::steps;
  PreemptionSignals const* signals = nullptr;
  std::function<bool()> is_spent{};  ///< for a budget that is measured
  std::function<void(double)>
      take_rate{};  ///< dollars per hour of a CostMeter, if a budget needs it

  /// Seconds of a unit of the rungs, if they are measured in time.
  double seconds_per_unit() const {
    return unit == RungUnit::cents ? 36 / settings->dollars_per_hour.value_or(1) : 1;
  }
};

/// A checkpoint of the trial itself, of a later step than the journal knows.
struct AheadOfJournal : StateError {
  using StateError::StateError;
};

/// Whether what an error names is this folder or in it: trials/1000 is not in trials/100.
inline bool is_in_folder(std::string_view where, std::filesystem::path const& folder) {
  std::string const name = folder.string();
  return where.starts_with(name) &&
         (where.size() == name.size() ||
          std::string_view("/:, ").find(where[name.size()]) != std::string_view::npos);
}

template <class Q>
constexpr bool rounds() {
  if constexpr (requires { bool{Q::options::half}; }) {
    return Q::options::half;
  } else {
    return false;
  }
}

/// The trainer of a recipe in a search, and how it is run.
template <class R, class Space, class Job>
class SearchTrainer;
template <class R, class Recipes, class... Vs, class Make, class Objective, class Train,
          class Valid, class... Ps>
class SearchTrainer<R, SearchSpace<Recipes, Vs...>,
                    SearchJob<Make, Objective, Train, Valid, Ps...>> {
  using Space = SearchSpace<Recipes, Vs...>;
  using Job = SearchJob<Make, Objective, Train, Valid, Ps...>;
  using Architecture = typename Job::architecture;

 public:
  using complete = Recipe<R, Ps..., SearchWatch>;
  using type = Trainer<typename Job::module_type, Objective, R, Ps..., SearchWatch>;
  /// A class, because an illegal recipe has no `policies`: members of a template are made where they are used.
  struct places : SettingPlaces<typename type::policies, Architecture, Objective> {};

  /// Whether validations could measure this metric, as far as types show.
  static bool may_measure(std::string_view metric) {
    return watching_of<typename type::policies>::type::may_measure(metric);
  }

  /// Whether a policy watches the metric as one that is better if it is larger; nothing if none watches it.
  static std::optional<bool> watches_larger([[maybe_unused]] std::string_view metric) {
    std::optional<bool> found;
    [[maybe_unused]] auto const look_at = [&]<class Watch>(std::type_identity<Watch>) {
      if constexpr (requires { bool{Watch::better == Better::higher}; }) {
        if (Watch::name == metric) found = Watch::better == Better::higher;
      }
    };
    [[maybe_unused]] auto const look = [&]<class... Ws>(list<Ws...>) {
      (look_at(std::type_identity<typename Ws::watch>{}), ...);
    };
    [&]<class... Qs>(list<Qs...>) {
      (look(typename watches_of<Qs>::type{}), ...);
    }(typename type::policies{});
    return found;
  }

  /// The policies of the recipe itself, with the members that no setting varies.
  static std::string fixed(Space const& space) {
    return JobIdentity<Space, Job>::template recipe<R>(space);
  }
  /// WeightsIn rounds the weights at the end of each rung.
  static constexpr bool rounds_weights() {
    return [](auto policies) {
      return []<class... Qs>(list<Qs...>) { return (false || ... || rounds<Qs>()); }(policies);
    }(typename type::policies{});
  }

  /// Trains one rung, or what is left of it. Errors of the trial are part of the outcome.
  static TaskOutcome run(Space const& space, Job const& job, SearchContext const& context,
                         SearchTask const& task, std::filesystem::path const& folder) {
    double const begin = WallClock::seconds();
    TaskOutcome outcome;
    std::error_code ignored;
    bool const resumes = std::filesystem::exists(folder / "checkpoints", ignored) &&
                         !std::filesystem::is_empty(folder / "checkpoints", ignored);
    bool begun = false;
    auto const fail = [&](TaskOutcome::Kind kind, std::string text) {
      outcome.fail(kind, std::move(text), task, context.settings->objectives.size());
    };
    try {
      train(space, job, context, task, folder, outcome, begun);
    } catch (ObjectiveError const&) {
      throw;
    } catch (DataError const&) {
      throw;  // a machine without its data, or its device, would fail one trial after the other
    } catch (DeviceError const&) {
      throw;
    } catch (ConcurrentFitError const&) {
      throw;
    } catch (LossError const& error) {
      fail(TaskOutcome::Kind::failure, failure_text(error));
    } catch (AheadOfJournal const& error) {
      fail(TaskOutcome::Kind::error, failure_text(error));
    } catch (StateError const& error) {
      // Its checkpoint is that of another job: the worker's would be refused for one trial after the other.
      if (resumes && !begun) throw;
      fail(TaskOutcome::Kind::error, failure_text(error));
    } catch (FormatError const& error) {
      // A damaged file of the data is no fault of the trial either.
      if (!is_in_folder(error.fault().where, folder)) throw;
      fail(TaskOutcome::Kind::error, failure_text(error));
    } catch (WeightRangeError const& error) {
      fail(TaskOutcome::Kind::failure, failure_text(error));
    } catch (StoreError const&) {
      throw;  // a full disk is no fault of the trial
    } catch (std::exception const& error) {
      if (std::string_view(error.what()).find("CUDA error") != std::string_view::npos &&
          !is_out_of_memory(std::current_exception())) {
        throw;  // every later call of this process would fail as well
      }
      bool const memory = is_out_of_memory(std::current_exception()) ||
                          dynamic_cast<MemoryError const*>(&error) != nullptr;
      fail(memory ? TaskOutcome::Kind::failure : TaskOutcome::Kind::error,
           (memory ? "out of memory: " : "") + failure_text(error));
    }
    outcome.pay(task, WallClock::seconds() - begin, context.settings->dollars_per_hour);
    return outcome;
  }

  /// Steps and samples of a whole run, as far as they are known.
  static RunLimits limits(Job const& job, Settings const& settings) {
    auto&& source = as_source(*job.train);
    return horizon_of(settings, source, RecipeTraits<typename type::policies>::batches);
  }

  /// Where a program keeps the settings that this recipe has.
  static WinnerCode code(Space const& space) {
    return places::code(space.settings, written_name<R>());
  }

 private:
  static type make(Job const& job, Architecture const& architecture, Settings const& settings) {
    return std::apply(
        [&](auto const&... values) {
          return type(job.make_module(architecture), job.objective, settings, values...);
        },
        job.shared);
  }

  static Report fit(Space const& space, Job const& job, Candidate const& candidate,
                    std::filesystem::path const& folder, type& trainer) {
    if constexpr (has<kinds::auto_batch, typename type::policies>) {
      MicroBatchFile const file(folder.parent_path().parent_path(),
                                recipe_name<R>() + places::architecture(space.settings, candidate) +
                                    "; " + trainer.device().str());
      auto& accumulate = trainer.template policy<kinds::accumulate>();
      file.read_into(accumulate.samples);
      Report report = trainer.fit(*job.train, *job.valid);
      bool const found = !trainer.template policy<kinds::auto_batch>().finding().empty();
      file.write(accumulate.micro_batch(), found);
      return report;
    } else {
      return trainer.fit(*job.train, *job.valid);
    }
  }

  /// Dollars per hour of the trainer's CostMeter.
  static double rate_of(type& trainer) {
    if constexpr (has<kinds::cost_meter, typename type::policies>) {
      auto const& meter = trainer.template policy<kinds::cost_meter>();
      auto const rate = meter.rate(trainer.device().is_cuda());
      if (rate.per_hour && meter.currency == "USD") return *rate.per_hour;
    }
    refuse_unpriced("CostMeter has no price in US dollars");
  }

  static void train(Space const& space, Job const& job, SearchContext const& context,
                    SearchTask const& task, std::filesystem::path const& folder,
                    TaskOutcome& outcome, bool& begun) {
    SearchSettings const& search = *context.settings;
    Settings settings = search.settings;
    settings.run_dir = folder;
    settings.seed = task.of.seed;
    if (settings.name.empty()) settings.name = recipe_name<R>();
    Architecture architecture{};
    places::set(space.settings, task.of.candidate, architecture);
    torch::manual_seed(settings.seed);
    type trainer = make(job, architecture, settings);
    places::set(space.settings, task.of.candidate, trainer.objective());
    places::set_policies(space.settings, task.of.candidate, trainer);
    bool reached = false;
    auto& watch = trainer.template policy<kinds::search_watch>();
    watch.unit = context.unit;
    watch.until = task.until;
    watch.seconds_per_unit = context.seconds_per_unit();
    if (context.is_spent) watch.is_spent = &context.is_spent;
    watch.signals = context.signals;
    watch.reached = &reached;
    watch.begun = &begun;
    if (trainer.checkpoint().resume != Resume::Exact) {
      throw ObjectiveError({.what = "Checkpoint::resume is not Resume::Exact",
                            .where = "SearchJob",
                            .why = "each rung would begin again, and train its samples twice",
                            .fix = "Leave it out."});
    }
    if (!trainer.checkpoint().from.empty()) {
      throw ObjectiveError({.what = "Checkpoint::from is set",
                            .where = "SearchJob",
                            .why = "each trial would go on with the steps of another run, and its "
                                   "rungs count from the first one",
                            .fix = "Leave it out, and load weights in make()."});
    }
    if constexpr (has<kinds::spot, typename type::policies>) {
      trainer.template policy<kinds::spot>().on_preemption = Preempted::Return;
    }
    // A trial is compared by the weights that validations measure.
    if constexpr (has<kinds::average, typename type::policies>) {
      trainer.template policy<kinds::average>().at_end = Weights::validated;
    }
    if (context.take_rate) context.take_rate(rate_of(trainer));
    // Also of a fit that throws: CostMeter has its bill.
    auto const take_bill = [&] {
      if constexpr (has<kinds::cost_meter, typename type::policies>) {
        auto const cost = trainer.template policy<kinds::cost_meter>().cost();
        if (cost && cost->currency == "USD") outcome.result.dollars = cost->amount;
      }
    };
    Report const report = [&] {
      try {
        return fit(space, job, task.of.candidate, folder, trainer);
      } catch (...) {
        take_bill();
        throw;
      }
    }();
    take_bill();
    outcome.result.steps = report.steps;
    outcome.result.samples = report.samples;
    outcome.by_ctrl_c = report.interrupted;
    outcome.warnings = report.warnings;
    if (!report.unsaved.empty()) {
      throw StoreError({.what = "the end of a rung is not saved",
                        .where = folder.string(),
                        .why = report.unsaved,
                        .fix = "Free space on that disk, and start the search again."});
    }
    // The flag alone could be that of a step that Rollback has undone.
    if (context.unit == RungUnit::steps && task.until) reached = report.steps >= *task.until;
    if (context.unit == RungUnit::samples && task.until) reached = report.samples >= *task.until;
    if (report.preempted && !reached) {
      outcome.kind = TaskOutcome::Kind::preempted;
      outcome.by_notice = report.preempted_by != kinds::search_watch::name;
      return;
    }
    outcome.ended = !report.preempted && task.until.has_value();
    if (context.unit == RungUnit::steps && task.until && report.steps > *task.until) {
      throw AheadOfJournal({.what = "the checkpoint of trial " + std::to_string(task.trial) +
                                    " is at step " + std::to_string(report.steps) +
                                    ", and the rung ends at " + std::to_string(*task.until),
                            .where = folder.string(),
                            .why = "the journal has lost lines, and a value of this step would be "
                                   "taken for one of that",
                            .fix = "Restore the journal, or search in another folder."});
    }
    if constexpr (has<kinds::average, typename type::policies>) {
      auto& average = trainer.template policy<kinds::average>();
      if (report.preempted && average.validate && average.averaged.get() != nullptr) {
        average.copy_into(trainer.module());
      }
    }
    // Before user code has the module.
    if (!report.preempted) {
      static_cast<void>(save_weights(trainer.module(), folder / "weights"));
    }
    outcome.result.values = objective_values(search,
                                             {.recipe = recipe_name<R>(),
                                              .metrics = trainer.evaluate(*job.valid),
                                              .train_loss = report.train_loss,
                                              .seconds = task.seconds_before + report.seconds,
                                              .dollars = outcome.result.dollars},
                                             base_module(trainer.module()));
    if (!is_finite(outcome.result.values)) {
      outcome.kind = TaskOutcome::Kind::failure;
      outcome.text = "an objective is not a finite number";
    }
  }
};

/// One recipe as values, so that the search itself is compiled once for a job.
template <class Space, class Job>
struct SearchEntrant {
  std::string name;
  TaskOutcome (*run)(Space const&, Job const&, SearchContext const&, SearchTask const&,
                     std::filesystem::path const&);
  RunLimits (*limits)(Job const&, Settings const&);
  bool (*may_measure)(std::string_view);
  WinnerCode (*code)(Space const&);
  std::string (*fixed)(Space const&);
  bool has_cost_meter;
  std::vector<bool> has_setting;
};

}  // namespace frugal::detail
