// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/types.h>
#include <torch/utils.h>
#include <boost/hana/any_of.hpp>
#include <boost/hana/bool.hpp>
#include <boost/hana/for_each.hpp>
#include <boost/hana/is_empty.hpp>
#include <boost/hana/type.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <optional>
#include <ostream>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <frugal/core/compose/composition.hpp>
#include <frugal/core/compose/recipe.hpp>
#include <frugal/core/libtorch/generators.hpp>
#include <frugal/core/run/call_in_progress.hpp>
#include <frugal/core/run/failure.hpp>
#include <frugal/core/run/judged.hpp>
#include <frugal/core/run/member_text.hpp>
#include <frugal/policy/kinds.hpp>
#include <frugal/policy/recipe_name.hpp>
#include <frugal/recipes.hpp>
#include <frugal/report/audit.hpp>
#include <frugal/report/compare/comparison.hpp>
#include <frugal/report/compare/job.hpp>
#include <frugal/trainer.hpp>

namespace frugal {

namespace detail {

struct NoTuning {
  template <class Trainer>
  void operator()(Trainer&) const {}
};

template <class Job>
struct trainer_of_job;
template <class Make, class Objective, class Train, class Valid, class... Ps>
struct trainer_of_job<CompareJob<Make, Objective, Train, Valid, Ps...>> {
  using job = CompareJob<Make, Objective, Train, Valid, Ps...>;
  template <class R>
  using complete = Recipe<R, Ps..., CompareWatch>;
  template <class R>
  using type = Trainer<typename job::module_type, Objective, R, Ps..., CompareWatch>;

  template <class R>
  static type<R> make(job const& of, typename job::module_type module, Settings const& settings) {
    return std::apply(
        [&](auto const&... values) {
          return type<R>(std::move(module), of.objective, settings, values...);
        },
        of.shared);
  }
};

/// Runs one recipe once. True if the run was preempted, and the comparison ends.
template <class R, class Job, class Tune>
bool run_trial(Job const& job, Tune& tune, Settings const& settings, TargetMetric const& target,
               Trial& trial) {
  torch::manual_seed(settings.seed);
  PeakMemory memory;
  auto trainer = trainer_of_job<Job>::template make<R>(job, job.make(), settings);
  auto& watch = trainer.template policy<CompareWatch::kind>();
  watch.target = &target;
  watch.trial = &trial;
  tune(trainer);
  // A trial is judged by the weights that validations measure, wherever it ends.
  if constexpr (has<kinds::average, typename decltype(trainer)::policies>) {
    trainer.template policy<kinds::average>().at_end = Weights::validated;
  }
  auto& module = base_module(trainer.module());
  memory.begin(trainer.device(), module);
  Report const report = [&] {
    if constexpr (Job::validates) {
      return trainer.fit(*job.train, *job.valid);
    } else {
      return trainer.fit(*job.train);
    }
  }();
  trial.peak_bytes = memory.above_start();
  trial.seed = settings.seed;
  trial.steps = report.steps;
  trial.samples = report.samples;
  trial.seconds = report.seconds;
  trial.train_loss = report.train_loss;
  trial.stopped_by = report.stopped_by;
  trial.weights = hash_of_tensors(module);
  trial.warnings = report.warnings;
  trial.objective = member_text(trainer.objective());
  if constexpr (Job::validates) {
    bool const restored = report.restored_step.value_or(report.steps) != report.steps;
    if (trial.metrics.empty() || restored) {
      trial.metrics.clear();
      for (auto const& [name, value] : trainer.evaluate(*job.valid)) {
        trial.metrics.emplace_back(name, value);
      }
    }
  }
  return report.preempted || report.interrupted;
}

/// One recipe as a value, so that the rounds are compiled once per job.
template <class Job, class Tune>
struct Entrant {
  std::string name;
  bool (*run)(Job const&, Tune&, Settings const&, TargetMetric const&, Trial&);
};

template <class Job, class Tune>
class Rounds {
 public:
  Rounds(Job const& job, Tune& tune, Comparison& into) : job_(job), tune_(tune), into_(into) {
    into.target = job.settings.target;
    into.dollars_per_hour = job.settings.dollars_per_hour;
    into.repeats = job.settings.repeats;
  }

  void run(std::vector<Entrant<Job, Tune>> const& entrants) {
    for (auto const& each : entrants) into_.rows.push_back({.name = unique(each.name)});
    std::size_t const count = entrants.size();
    if (job_.settings.warmup_steps > 0) {
      for (std::size_t i = 0; i < count && !into_.interrupted; ++i) warm_up(entrants[i], i);
    }
    auto const orders = round_orders(count, job_.settings.repeats, job_.settings.settings.seed);
    for (std::size_t repeat = 0; repeat < orders.size(); ++repeat) {
      for (std::size_t const at : orders[repeat]) {
        if (into_.interrupted) return;
        if (!into_.rows[at].failed()) measure(entrants[at], at, repeat);
      }
    }
  }

 private:
  std::string unique(std::string const& name) const {
    return numbered_name(name, [&](std::string const& candidate) {
      return std::any_of(into_.rows.begin(), into_.rows.end(),
                         [&](ComparedRecipe const& row) { return row.name == candidate; });
    });
  }

  Settings settings_of(std::size_t at, std::string const& part) const {
    Settings settings = job_.settings.settings;
    if (!settings.run_dir.empty()) {
      settings.run_dir = settings.run_dir / (std::to_string(at + 1) + "-" + part);
    }
    if (settings.name.empty()) settings.name = into_.rows[at].name;
    return settings;
  }

  void warm_up(Entrant<Job, Tune> const& entrant, std::size_t at) {
    Settings settings = settings_of(at, "warm-up");
    std::uint64_t const most = job_.settings.warmup_steps;
    settings.steps = std::min(settings.steps.value_or(most), most);
    settings.epochs.reset();
    Trial ignored;
    attempt(entrant, at, settings, TargetMetric{}, ignored);
  }

  void measure(Entrant<Job, Tune> const& entrant, std::size_t at, std::size_t repeat) {
    if (job_.settings.progress != nullptr) {
      *job_.settings.progress << "repeat " << repeat + 1 << " of " << job_.settings.repeats << ": "
                              << into_.rows[at].name << std::endl;
    }
    Settings settings = settings_of(at, "repeat-" + std::to_string(repeat + 1));
    settings.seed += repeat;
    Trial trial{.repeat = repeat};
    if (attempt(entrant, at, settings, job_.settings.target, trial)) {
      if (!objective_) objective_ = trial.objective;
      if (job_.settings.target.metric == "loss" && trial.objective != *objective_) {
        into_.rows[at].error = "its objective is " + trial.objective +
                               ", and that of another row " + *objective_ +
                               ": one target of the loss is not the same for both. Give a metric "
                               "as the target";
        return;
      }
      into_.rows[at].trials.push_back(std::move(trial));
    }
  }

  /// Whether the run came to its end.
  bool attempt(Entrant<Job, Tune> const& entrant, std::size_t at, Settings const& settings,
               TargetMetric const& target, Trial& trial) {
    try {
      into_.interrupted = entrant.run(job_, tune_, settings, target, trial);
      return !into_.interrupted;
    } catch (std::exception const& error) {
      into_.rows[at].error = failure_text(error);
      return false;
    }
  }

  Job const& job_;
  Tune& tune_;
  Comparison& into_;
  std::optional<std::string> objective_;  ///< of the first trial
};

/// `recipes` is a Hana sequence of types that require_types() has accepted.
template <class Recipes, class Job, class Tune>
Comparison compare_all(Recipes const& recipes, Job const& job, Tune& tune) {
  job.settings.require(Job::validates);
  // Each run seeds the generators for its module.
  CallInProgress const call({.name = "compare"});
  KeepGenerators const generators;
  Comparison comparison;
  std::vector<Entrant<Job, Tune>> entrants;
  boost::hana::for_each(recipes, [&]<class R>(boost::hana::basic_type<R>) {
    using complete = typename trainer_of_job<Job>::template complete<R>;
    if constexpr (complete::legal) {
      entrants.push_back({recipe_name<R>(), &run_trial<R, Job, Tune>});
    } else {
      comparison.dropped.push_back({recipe_name<R>(), std::string(complete::fault)});
    }
  });
  Rounds<Job, Tune>(job, tune, comparison).run(entrants);
  return comparison;
}

/// Whether a recipe is legal with what all recipes of a job share.
template <class Job>
struct IsLegalInJob {
  template <class R>
  constexpr auto operator()(boost::hana::basic_type<R>) const {
    return boost::hana::bool_c<trainer_of_job<Job>::template complete<R>::legal>;
  }
};

template <class Recipes>
constexpr bool require_some() {
  constexpr bool some = !decltype(boost::hana::is_empty(std::declval<Recipes const&>()))::value;
  static_assert(some,
                "frugal: compare has no recipes. Write compare<Baseline, A, B>(job), or "
                "compare(product(Recipe<...>{}, Axis<...>{}), job).");
  return some;
}

}  // namespace detail

/// Trains every recipe of a Hana sequence of types, such as a product(), from the same weights on the
/// same batches, several times, and compares time, memory, quality and cost. The first legal one is
/// the baseline; illegal ones are dropped, and named in the table. A recipe that throws has its error
/// in its row.
///
/// `tune(trainer)` sets run-time settings of each recipe: [](auto& t) { t.optimizer().lr = 2e-3; }
///
/// SettingsError for a negative price, no repeats, a target that nothing can reach, or a folder
/// that is not empty.
template <class Recipes, class Make, class Objective, class Train, class Valid, class... Ps,
          class Tune = detail::NoTuning>
Comparison compare(Recipes const& recipes,
                   CompareJob<Make, Objective, Train, Valid, Ps...> const& job, Tune tune = {}) {
  using job_type = CompareJob<Make, Objective, Train, Valid, Ps...>;
  if constexpr (detail::require_types<Recipes>()) {
    if constexpr (detail::require_some<Recipes>()) {
      static_assert(
          decltype(boost::hana::any_of(recipes, detail::IsLegalInJob<job_type>{}))::value,
          "frugal: compare has only recipes that no Trainer accepts. Recipe<...>::fault says "
          "why, or list one of them in compare<...>(job).");
      return detail::compare_all(recipes, job, tune);
    }
  }
}

/// Compares the listed recipes or single policies; an illegal one does not compile.
template <class... Rs, class SomeJob, class Tune = detail::NoTuning>
  requires detail::is_job<SomeJob>
Comparison compare(SomeJob const& job, Tune tune = {}) {
  if constexpr (detail::require_some<Axis<Rs...>>()) {
    static_assert((true && ... &&
                   (detail::RecipeCheck<typename detail::trainer_of_job<SomeJob>::template complete<
                        Rs>::policies>::require() ||
                    true)));
    return detail::compare_all(Axis<Rs...>{}, job, tune);
  }
}

}  // namespace frugal
