// SPDX-License-Identifier: Apache-2.0
#pragma once

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

/// Warns when a run spends faster than a limit, over a sliding window; with Stop the run ends.
///
/// Lever   none: it finds a run on too large a machine, or on more devices than it should have.
/// Cost    per step one look at a value of CostMeter. Alerts are sent by a thread of their own.
/// State   the levels that were reported. The window begins again with each process.
/// Errors  as Budget; SettingsError for a window that is not above 0.
template <class... Options>
struct BurnRate {
 private:
  using classes = list<detail::option::spent_limit, detail::option::per_time, detail::option::stop,
                       detail::option::webhook, detail::option::command>;
  static_assert(detail::options_known<classes, Options...>,
                "frugal: BurnRate<...>: unknown option. Options: a limit such as Usd<3> or "
                "KilowattHours<1>; PerHour or PerDay; Stop; Webhook; NotifyCommand.");
  static_assert(detail::options_unique<classes, Options...>,
                "frugal: BurnRate<...>: the same option twice. Keep one limit, one of PerHour and "
                "PerDay, one Stop, one Webhook and one NotifyCommand.");
  using Limit = detail::option_of<detail::option::spent_limit, void, Options...>;
  static_assert(!std::is_void_v<Limit>,
                "frugal: this BurnRate has no limit. Write BurnRate<Usd<3>, PerHour>.");
  using traits = detail::limit_traits<std::conditional_t<std::is_void_v<Limit>, Usd<1>, Limit>>;
  using Per = detail::option_of<detail::option::per_time, PerHour, Options...>;

 public:
  using kind = kinds::burn_rate;
  using listens = detail::spending_listens;
  FRUGAL_DIAGNOSTIC(
      without_meter,
      "frugal: BurnRate needs CostMeter: nobody counts what is spent. Add CostMeter{}.");
  using needs = list<need<kinds::cost_meter, without_meter>>;
  using after = list<kinds::cost_meter>;

  static constexpr bool stops = (false || ... || detail::option::stop::has<Options>);
  static constexpr About about{Term::none, "a look at a number in each step"};

  using webhook_type = detail::option_of<detail::option::webhook, detail::NoChannel, Options...>;
  using command_type = detail::option_of<detail::option::command, detail::NoChannel, Options...>;

  double limit = traits::amount;       ///< in the units of the type
  double window = 600;                 ///< seconds over which the rate is the mean
  std::vector<double> levels = {1.0};  ///< shares of the limit at which it warns
  double hysteresis = 0.1;             ///< share by which a level must be left
  webhook_type webhook{};
  command_type command{};

  class State;
};

template <class... Options>
class BurnRate<Options...>::State : public detail::SpendingState<BurnRate<Options...>, traits> {
  using Base = detail::SpendingState<BurnRate<Options...>, traits>;

 public:
  explicit State(BurnRate const& settings)
      : Base(settings, settings.levels), window_(settings.window), rate_(settings.window / 3600) {}

  void on_fit_begin(FitBegin& phase) {
    auto const require = [](double value, char const* name) {
      if (detail::is_positive(value)) return;
      throw SettingsError({.what = std::string("the ") + name + " is " + detail::general(value, 6),
                           .where = std::string("BurnRate::") + name,
                           .why = "no rate could be compared with it",
                           .fix = "Give more than 0."});
    };
    require(limit_, "limit");
    require(window_, "window");
    this->begin(phase, "the limit");
  }

  /// A run that this has ended continues: its window is empty.
  void on_ready(Ready& phase) {
    this->ready_ = true;
    if (phase.stopped_by(kind::name)) phase.withdraw_stop();
  }

  flow on_step(Step& phase) { return look(phase); }

  flow on_epoch_end(EpochEnd& phase) { return look(phase); }

  void on_fit_end(FitEnd&) { this->close(); }

 private:
  using Base::limit_;
  using Base::text;

  flow look(Phase const& phase) {
    double const hours = phase.gauges().find("hours").value_or(0);
    if (hours == std::exchange(this->seen_, hours)) return verdict_;
    double const amount = this->spent(phase);
    auto const per_hour = rate_.look(hours, amount);
    if (!per_hour) return verdict_;
    phase.set_gauge(traits::rate, *per_hour);
    double const rate = *per_hour * Per::hours;
    bool const ends = stops && verdict_ == flow::proceed && rate >= limit_;
    if (ends) verdict_ = flow::stop;
    auto const level = this->levels_.look(rate / limit_);
    // A stop is always reported, also if an earlier process has reported this level.
    if (level || ends) tell(phase, level.value_or(rate / limit_), amount, rate);
    return verdict_;
  }

  void tell(Phase const& phase, double level, double amount, double rate) {
    bool const ends = verdict_ == flow::stop;
    this->send(phase, level, amount, ends ? "stop" : "warn",
               "the run spends " + text(rate) + " " + std::string(Per::text) +
                   ", and the limit is " + text(limit_) + (ends ? "; it ends here" : ""),
               {{"rate", rate}, {"per_hours", Per::hours}});
  }

  double window_;
  detail::SlidingRate rate_;
  flow verdict_ = flow::proceed;
};

}  // namespace frugal
