// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <frugal/base/number_text.hpp>
#include <frugal/core/compose/about.hpp>
#include <frugal/core/compose/policy.hpp>
#include <frugal/core/run/phases.hpp>
#include <frugal/error.hpp>
#include <frugal/policy/kinds.hpp>
#include <frugal/report/budget/limit.hpp>
#include <frugal/report/budget/spending_state.hpp>

namespace frugal {

/// Warns at shares of a budget, once each, and when the run will go beyond it; with Stop the run
/// ends there.
///
/// Lever   hours per run: with Stop, no run costs more than its budget.
/// Cost    per step one look at a value of CostMeter. Alerts are sent by a thread of their own.
/// State   the levels that were reported; a resumed run does not repeat them.
/// Errors  SettingsError for a limit, a level or a channel that cannot be meant, and if CostMeter
///         does not know what the limit is measured in. A channel that fails is a note in
///         Report::warnings.
///
/// The step is finished, and Checkpoint saves after it. With a larger limit the run continues.
template <class... Options>
struct Budget {
 private:
  using classes = list<detail::option::limit, detail::option::stop, detail::option::webhook,
                       detail::option::command>;
  static_assert(detail::options_known<classes, Options...>,
                "frugal: Budget<...>: unknown option. Options: a limit such as Usd<20>, Hours<4> "
                "or KilowattHours<5>; Stop; Webhook; NotifyCommand.");
  static_assert(detail::options_unique<classes, Options...>,
                "frugal: Budget<...>: the same option twice. Keep one limit, one Stop, one Webhook "
                "and one NotifyCommand.");
  using Limit = detail::option_of<detail::option::limit, void, Options...>;
  static_assert(!std::is_void_v<Limit>,
                "frugal: this Budget has no limit. Write Budget<Usd<20>>, Budget<Hours<4>> or "
                "Budget<KilowattHours<5>>.");
  using traits = detail::limit_traits<std::conditional_t<std::is_void_v<Limit>, Usd<1>, Limit>>;

 public:
  using kind = kinds::budget;
  using listens = detail::spending_listens;
  FRUGAL_DIAGNOSTIC(
      without_meter,
      "frugal: Budget needs CostMeter: nobody counts what is spent. Add CostMeter{}.");
  using needs = list<need<kinds::cost_meter, without_meter>>;
  using after = list<kinds::cost_meter>;

  static constexpr bool stops = (false || ... || detail::option::stop::has<Options>);
  static constexpr About about{stops ? Term::hours_per_run : Term::none,
                               "a look at a number in each step"};

  using webhook_type = detail::option_of<detail::option::webhook, detail::NoChannel, Options...>;
  using command_type = detail::option_of<detail::option::command, detail::NoChannel, Options...>;

  double limit = traits::amount;                 ///< in the unit of the type
  std::vector<double> levels = {0.5, 0.8, 1.0};  ///< shares of the limit at which it warns
  double hysteresis = 0.05;                      ///< share by which a level must be left
  bool projected = true;                         ///< whether it warns of a projected overspend
  webhook_type webhook{};
  command_type command{};

  class State;
};

template <class... Options>
class Budget<Options...>::State : public detail::SpendingState<Budget<Options...>, traits> {
  using Base = detail::SpendingState<Budget<Options...>, traits>;

 public:
  explicit State(Budget const& settings)
      : Base(settings, told_levels(settings.levels)),
        overspend_({1.0}, settings.hysteresis, "Budget"),
        projected_(settings.projected) {}

  void on_fit_begin(FitBegin& phase) {
    if (!detail::is_positive(limit_)) {
      throw SettingsError({.what = "the limit is " + std::to_string(limit_),
                           .where = "Budget",
                           .why = "it would be spent before the run begins",
                           .fix = "Give more than 0 " + std::string(traits::unit) + "."});
    }
    this->begin(phase, "the budget");
  }

  /// As with Settings::epochs, an ended run continues if it gets more.
  void on_ready(Ready& phase) {
    this->ready_ = true;
    if (!phase.stopped_by(kind::name)) return;
    stopped_ = verdict(this->spent(phase)) == flow::stop;
    if (!stopped_) phase.withdraw_stop();
  }

  flow on_step(Step& phase) { return look(phase); }

  flow on_epoch_end(EpochEnd& phase) { return look(phase); }

  void on_fit_end(FitEnd& phase) {
    over_ = true;
    // A preempted run is saved already: it would report the same again when it is resumed.
    if (!phase.preempted()) static_cast<void>(look(phase));
    this->close();
  }

  template <class Archive>
  void persist(Archive& archive) {
    Base::persist(archive);
    this->persist_levels(archive, "overspend", overspend_);
  }

 private:
  using Base::limit_;
  using Base::text;

  static constexpr double share_before_projection = 0.01;

  /// A stop is always reported, whatever levels are set.
  static std::vector<double> told_levels(std::vector<double> levels) {
    bool const has_all = std::find(levels.begin(), levels.end(), 1.0) != levels.end();
    if (stops && !has_all) levels.push_back(1.0);
    return levels;
  }

  flow verdict(double amount) const {
    return stops && amount >= limit_ ? flow::stop : flow::proceed;
  }

  flow look(Phase const& phase) {
    double const amount = this->spent(phase);
    if (amount == std::exchange(this->seen_, amount)) return verdict(amount);
    auto const level = this->levels_.look(amount / limit_);
    // A run that has ended by itself is not stopped. A stop is reported also if its level was
    // reported before: by a run without Stop, or at a lower limit.
    bool const ends = !over_ && verdict(amount) == flow::stop && !std::exchange(stopped_, true);
    if (level || ends) tell(phase, level.value_or(1.0), amount, ends);
    if (projected_) look_ahead(phase, amount);
    return verdict(amount);
  }

  void look_ahead(Phase const& phase, double amount) {
    // The first steps are slower than those that follow.
    if (amount < share_before_projection * limit_) return;
    auto const end = phase.gauges().find(traits::projected);
    if (!end || !overspend_.look(*end / limit_) || amount >= limit_) return;
    this->send(phase, 1.0, amount, "projected",
               "the run will spend " + text(*end) + " of " + text(limit_) + " until its end",
               {{"projected", *end}});
  }

  void tell(Phase const& phase, double level, double amount, bool ends) {
    this->send(phase, level, amount, ends ? "stop" : "warn",
               detail::general(100 * level, 4) + "% of " + text(limit_) + " is reached: " +
                   text(amount) + " spent" + (ends ? ", and the run ends here" : ""));
  }

  detail::Levels overspend_;
  bool projected_;
  bool stopped_ = false;  ///< the stop is reported
  bool over_ = false;     ///< the last step is over
};

}  // namespace frugal
