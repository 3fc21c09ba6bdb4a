// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/hana/any_of.hpp>
#include <boost/hana/bool.hpp>
#include <boost/hana/for_each.hpp>
#include <boost/hana/type.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <frugal/base/number_text.hpp>
#include <frugal/base/wall_clock.hpp>
#include <frugal/core/compose/recipe.hpp>
#include <frugal/core/libtorch/generators.hpp>
#include <frugal/core/run/call_in_progress.hpp>
#include <frugal/error.hpp>
#include <frugal/policy/checkpoint/interrupt.hpp>
#include <frugal/policy/kinds.hpp>
#include <frugal/policy/recipe_name.hpp>
#include <frugal/policy/spot/signals.hpp>
#include <frugal/recipes.hpp>
#include <frugal/search/engine.hpp>
#include <frugal/search/entrant.hpp>
#include <frugal/search/forecast.hpp>
#include <frugal/search/job.hpp>
#include <frugal/search/job_identity.hpp>
#include <frugal/search/journal.hpp>
#include <frugal/search/outcome.hpp>
#include <frugal/search/results/winner_code.hpp>
#include <frugal/search/sampler/sampler.hpp>
#include <frugal/search/schedule/schedule.hpp>
#include <frugal/search/space.hpp>
#include <frugal/search/trials/finalists.hpp>
#include <frugal/search/trials/history.hpp>

namespace frugal {

namespace detail {

/// Whether a recipe is legal with what all recipes of a job share.
template <class Space, class Job>
struct IsLegalInSearch {
  template <class R>
  constexpr auto operator()(boost::hana::basic_type<R>) const {
    return boost::hana::bool_c<SearchTrainer<R, Space, Job>::complete::legal>;
  }
};

template <class Space, class Job>
struct RoundsInSearch {
  template <class R>
  constexpr auto operator()(boost::hana::basic_type<R>) const {
    if constexpr (SearchTrainer<R, Space, Job>::complete::legal) {
      return boost::hana::bool_c<SearchTrainer<R, Space, Job>::rounds_weights()>;
    } else {
      return boost::hana::false_c;
    }
  }
};

/// A search as one process sees it.
template <class Space, class Job>
class SearchRun {
  using Entrant = SearchEntrant<Space, Job>;

 public:
  static constexpr bool is_any_legal() {
    return decltype(boost::hana::any_of(std::declval<Space const&>().recipes,
                                        IsLegalInSearch<Space, Job>{}))::value;
  }

  /// Whether the Checkpoint of a legal recipe rounds weights.
  static constexpr bool rounds_weights() {
    return decltype(boost::hana::any_of(std::declval<Space const&>().recipes,
                                        RoundsInSearch<Space, Job>{}))::value;
  }

  SearchRun(Space const& space, Job const& job, SearchSettings const& settings)
      : space_(space), job_(job), settings_(settings) {
    settings.require();
    boost::hana::for_each(space.recipes, [&]<class R>(boost::hana::basic_type<R>) { add<R>(); });
    std::apply([&](auto const&... each) { (add_setting(each), ...); }, space.settings);
    domain_.require();
    require_objectives(settings_, entrants_);
    std::apply([&](auto const&... each) { (require_one_ruler(each), ...); }, space.settings);
  }
  SearchRun(SearchRun const&) = delete;
  SearchRun& operator=(SearchRun const&) = delete;

  template <SearchScheduler Scheduler, SearchSampler Sampler>
  void plan(Scheduler const& scheduler, Sampler const& sampler) {
    sampler.require();
    unit_ = scheduler.unit;
    std::vector<RunLimits> limits;
    for (Entrant const& each : entrants_) limits.push_back(each.limits(job_, settings_.settings));
    std::uint64_t const horizon = search_horizon(settings_, unit_, limits);
    SearchLimits given{.horizon = horizon,
                       .budget = planned_budget(settings_.budget, unit_),
                       .objectives = settings_.objectives.size(),
                       .learns = Sampler::learns,
                       .generation = sampler.generation(),
                       .domain = &domain_};
    if (given.budget) {
      // With less for trials no more of them come to the end, so no more are repeated.
      auto const all = scheduler.bind(given);
      SearchForecast const most =
          forecast(*all, given.budget, given.objectives, settings_.repeated(), 0);
      given.reserved = static_cast<std::uint64_t>(most.repeats);
      given.budget = without_repeats(*given.budget, given.reserved, unit_);
      repeats_ = given.reserved / horizon;
    }
    budget_ = given.budget;
    schedule_ = scheduler.bind(given);
    if (budget_) {
      require_complete(forecast(*schedule_, budget_, given.objectives, settings_.repeated(), 0),
                       *planned_budget(settings_.budget, unit_), unit_);
    }
    for (auto const& rungs : schedule_->rungs())
      require_first_rung(settings_, unit_, rungs.front());
    suggest_ = [this, sampler](SearchHistory const& seen, std::size_t trial) {
      return sampler.suggest(domain_, seen, trial, settings_.settings.seed);
    };
    sampler_ = sampler.text();
    identity_ = search_identity(settings_, domain_, schedule_->text(), sampler_, limits);
    learns_ = Sampler::learns;
  }

  SearchForecast explain(std::ostream& out) const {
    SearchForecast const expected =
        forecast(*schedule_, budget_, settings_.objectives.size(), settings_.repeated());
    out << forecast_text(expected, *schedule_, unit_, sampler_, learns_, is_measured(),
                         settings_.repeated());
    for (auto const& [name, fault] : dropped_) out << "dropped: " << name << ": " << fault << '\n';
    return expected;
  }

  SearchOutcome run() {
    // Each trial seeds the generators for its module.
    CallInProgress const call({.name = "search"});
    KeepGenerators const generators;
    PreemptionSignals signals;
    InterruptSignal ctrl_c;
    ctrl_c.take();
    for (Entrant const& each : entrants_) {
      identity_.emplace_back(std::string(job_prefix) + "the recipe '" + each.name + "'",
                             each.fixed(space_));
    }
    JobIdentity<Space, Job>::add(space_, job_, settings_.settings.seed, identity_);
    SearchJournal journal(settings_.settings.run_dir,
                          settings_.settings.name.empty() ? "frugal" : settings_.settings.name,
                          domain_, settings_.objectives, identity_);
    SearchEngine engine(journal, *schedule_, suggest_,
                        {.seed = settings_.settings.seed,
                         .finalists = settings_.repeated(),
                         .winner_by = settings_.winning_objective(),
                         .budget = budget_,
                         .seconds = seconds_of(settings_.budget.hours),
                         .dollars = settings_.budget.dollars,
                         .dollars_per_hour = settings_.dollars_per_hour,
                         .repeats = repeats_,
                         .most_failures = settings_.most_failures,
                         .most_kills = settings_.most_kills});
    SearchContext context{.settings = &settings_, .unit = unit_, .signals = &signals};
    if (is_budget_measured()) context.is_spent = [&engine] { return engine.is_spent(); };
    if (settings_.budget.dollars && !settings_.dollars_per_hour) {
      context.take_rate = [&engine](double per_hour) { engine.take_rate(per_hour); };
    }
    SearchOutcome outcome;
    Patience patience;
    while (true) {
      outcome.by_ctrl_c = outcome.by_ctrl_c || ctrl_c.requested();
      outcome.interrupted = outcome.interrupted || outcome.by_ctrl_c || signals.requested() ||
                            settings_.settings.stop.stop_requested();
      if (outcome.interrupted) break;
      SearchTask task;
      SearchEngine::Kind const kind = engine.next(task);
      if (kind == SearchEngine::Kind::wait) {
        patience.wait(engine.held_by());
        continue;
      }
      patience = Patience();
      if (kind == SearchEngine::Kind::budget) outcome.stopped_by = "budget";
      if (kind != SearchEngine::Kind::task) break;
      TaskOutcome const ended = train(engine, context, task);
      engine.record(task, ended);
      show(journal, task, ended);
      outcome.by_ctrl_c = ended.by_ctrl_c;
      outcome.interrupted = ended.by_notice;
    }
    if (signals.requested()) {
      PreemptionSignals::set_code(75);
      signals.next_ends();
    }
    fill(outcome, journal, engine);
    return outcome;
  }

 private:
  /// A machine without its data or its device, with a full disk or another job ends here and not the trial: the
  /// rung is given up as it is by a notice, so that it does not count as a kill.
  TaskOutcome train(SearchEngine& engine, SearchContext const& context, SearchTask& task) {
    double const begin = WallClock::seconds();
    try {
      claim_folder(engine.folder_of(task.trial), candidate_text(domain_, task.of, identity_));
      return entrants_[task.of.candidate.recipe].run(space_, job_, context, task,
                                                     engine.folder_of(task.trial));
    } catch (Error const&) {
      try {
        engine.record(
            task, {.kind = TaskOutcome::Kind::preempted, .seconds = WallClock::seconds() - begin});
      } catch (Error const&) {  // the journal's disk is full, too
      }
      throw;
    }
  }

  template <class R>
  void add() {
    using One = SearchTrainer<R, Space, Job>;
    if constexpr (One::complete::legal) {
      for (SearchObjective const& each : settings_.objectives) {
        auto const larger = One::watches_larger(each.name);
        if (!larger || *larger == each.maximise || settings_.measures.contains(each.name)) continue;
        throw SettingsError({.what = "the objective '" + each.name + "' is " +
                                     (each.maximise ? "maximised" : "minimised"),
                             .where = "SearchSettings::objectives",
                             .why = "a policy of '" + recipe_name<R>() +
                                    "' watches it as one that is better if " +
                                    (*larger ? "larger" : "smaller"),
                             .fix = "Give both the same direction."});
      }
      entrants_.push_back({.name = unique(recipe_name<R>()),
                           .run = &One::run,
                           .limits = &One::limits,
                           .may_measure = &One::may_measure,
                           .code = &One::code,
                           .fixed = &One::fixed,
                           .has_cost_meter = has<kinds::cost_meter, typename One::type::policies>,
                           .has_setting = settings_of<One>(space_.settings)});
      domain_.recipes.push_back(entrants_.back().name);
    } else {
      dropped_.emplace_back(recipe_name<R>(), std::string(One::complete::fault));
    }
  }
  template <class One, class... Vs>
  static std::vector<bool> settings_of(std::tuple<Vs...> const&) {
    return {One::places::template has<Vs>()...};
  }
  std::string unique(std::string const& name) const {
    return numbered_name(name, [&](std::string const& candidate) {
      return std::ranges::count(domain_.recipes, candidate) != 0;
    });
  }

  template <class V>
  void add_setting(V const& setting) {
    setting.require();
    std::size_t const index = domain_.settings.size();
    SearchedSetting added{.name = setting.name, .values = setting.values, .recipes = {}};
    for (std::size_t r = 0; r < entrants_.size(); ++r) {
      if (entrants_[r].has_setting[index]) added.recipes.push_back(r);
    }
    if (added.recipes.empty()) {
      throw SettingsError({.what = "no recipe has the setting '" + setting.name + "'",
                           .where = "a search space",
                           .why = "neither a policy of a legal recipe, nor the architecture that "
                                  "make() takes, nor the objective has the member",
                           .fix = "Remove it, or add a recipe with the policy."});
    }
    if (added.recipes.size() == entrants_.size()) added.recipes.clear();
    domain_.settings.push_back(std::move(added));
  }

  /// A setting of the objective changes what "loss" means: trials would be compared by a ruler of their own each.
  template <class V>
  void require_one_ruler(V const& setting) const {
    if constexpr (V::template is_in<decltype(job_.objective)>) {
      for (SearchObjective const& each : settings_.objectives) {
        bool const is_loss = each.name == "loss" || each.name == "train_loss";
        if (!is_loss || settings_.measures.contains(each.name)) continue;
        throw SettingsError(
            {.what = "the setting '" + setting.name +
                     "' is a member of the objective, and trials "
                     "are compared by '" +
                     each.name + "'",
             .where = "SearchSettings::objectives",
             .why = "each trial would measure itself with another loss",
             .fix = "Name a metric, such as SearchSettings{.objectives = {{.name = \"accuracy\", "
                    ".maximise = true}}}, or one of SearchSettings::measures."});
      }
    }
  }

  static std::optional<double> seconds_of(std::optional<double> hours) {
    return hours ? std::optional(*hours * 3600) : std::nullopt;
  }
  bool is_budget_measured() const { return settings_.budget.hours || settings_.budget.dollars; }
  bool is_measured() const {
    return is_budget_measured() ||
           std::ranges::any_of(settings_.objectives, [](SearchObjective const& each) {
             return each.name == "seconds" || each.name == "dollars";
           });
  }

  void show(SearchJournal const& journal, SearchTask const& task, TaskOutcome const& ended) const {
    if (settings_.progress == nullptr) return;
    SearchResults shown{.domain = domain_, .history = {}, .objectives = settings_.objectives};
    std::string line =
        "trial " + std::to_string(task.trial) + ", " + shown.label(task.of.candidate) + ": ";
    if (ended.kind == TaskOutcome::Kind::result) {
      line += std::to_string(ended.result.steps) + " steps";
      for (std::size_t i = 0; i < settings_.objectives.size(); ++i) {
        line += ", " + settings_.objectives[i].name + " " +
                general(settings_.objectives[i].to_minimise(ended.result.values[i]), 4);
      }
    } else if (ended.kind == TaskOutcome::Kind::preempted) {
      line += "preempted";
    } else {
      line += ended.text;
    }
    line += " (" + std::to_string(journal.history().trials.size()) + " trials)";
    *settings_.progress << line << std::endl;
  }

  void fill(SearchOutcome& outcome, SearchJournal const& journal,
            SearchEngine const& engine) const {
    outcome.domain = domain_;
    outcome.history = journal.history();
    outcome.objectives = settings_.objectives;
    outcome.rungs = schedule_->rungs();
    outcome.unit = name_of(unit_);
    outcome.dollars_per_hour = settings_.dollars_per_hour;
    outcome.dropped = dropped_;
    outcome.folder = settings_.settings.run_dir;
    outcome.order = journal.order();
    outcome.winner = winner_of(outcome.history, settings_.winning_objective());
    outcome.winner_by = settings_.winning_objective();
    if (settings_.objectives.size() > 1) outcome.front = front_of(outcome.history);
    if (journal.torn_lines() != 0) {
      outcome.warnings.push_back(
          "the journal ended in an unfinished line, of a process that was "
          "killed: it was removed, and the rung is ended again from its "
          "checkpoint");
    }
    for (std::string& each : trial_warnings(outcome.history)) {
      outcome.warnings.push_back(std::move(each));
    }
    std::size_t const missing = static_cast<std::size_t>(std::ranges::count_if(
        outcome.history.trials,
        [](SearchTrial const& each) { return each.repeats && !each.is_over(); }));
    if (missing != 0) {
      outcome.warnings.push_back(
          count_text(missing, "repeat") +
          " of finalists had no time to end: the winner is chosen without them");
    }
    if (outcome.winner) {
      std::size_t const recipe = outcome.history.trials[*outcome.winner].candidate.recipe;
      outcome.code =
          "using namespace frugal;\n" + winner_code(outcome, entrants_[recipe].code(space_));
      outcome.weights = engine.folder_of(*outcome.winner) / "weights";
    }
    if (!outcome.interrupted && outcome.stopped_by.empty()) outcome.require_result();
  }

  Space const& space_;
  Job const& job_;
  SearchSettings const& settings_;
  std::vector<Entrant> entrants_;
  SearchDomain domain_;
  std::vector<std::pair<std::string, std::string>> dropped_;
  RungUnit unit_ = RungUnit::steps;
  std::optional<std::uint64_t> budget_;
  std::optional<std::uint64_t> repeats_;  ///< for which a planned budget pays
  std::unique_ptr<SearchSchedule const> schedule_;
  SearchEngine::Suggest suggest_;
  std::string sampler_;
  SearchIdentity identity_;
  bool learns_ = false;
};

}  // namespace detail
}  // namespace frugal
