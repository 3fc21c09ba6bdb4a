// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <frugal/core/compose/about.hpp>
#include <frugal/core/compose/policy.hpp>
#include <frugal/core/run/phases.hpp>
#include <frugal/error.hpp>
#include <frugal/inline.hpp>
#include <frugal/policy/kinds.hpp>
#include <frugal/report/budget/alerts.hpp>
#include <frugal/report/budget/levels.hpp>
#include <frugal/report/budget/limit.hpp>

namespace frugal {

namespace detail {

/// An amount that grows with time, over the last part of it. Keeps a fixed number of samples.
class SlidingRate {
 public:
  explicit SlidingRate(double window) : window_(window) {}

  /// The mean rate over the window, or up to a 32nd longer; nothing before it is full. Both values
  /// must not fall.
  FRUGAL_INLINE std::optional<double> look(double hours, double amount) {
    if (count_ == 0 || hours - at(count_ - 1).hours >= window_ / 32) {
      if (count_ == samples_.size()) drop();
      samples_[(first_ + count_++) % samples_.size()] = {hours, amount};
    }
    while (count_ > 1 && hours - at(1).hours >= window_) drop();
    double const span = hours - at(0).hours;
    if (span < window_ || !(span > 0)) return {};
    return (amount - at(0).amount) / span;
  }

 private:
  struct Sample {
    double hours = 0;
    double amount = 0;
  };
  Sample const& at(std::size_t i) const { return samples_[(first_ + i) % samples_.size()]; }
  FRUGAL_INLINE void drop() {
    first_ = (first_ + 1) % samples_.size();
    --count_;
  }

  double window_;
  std::array<Sample, 64> samples_{};
  std::size_t first_ = 0;
  std::size_t count_ = 0;
};

}  // namespace detail

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
  using listens = list<around::fit, on::fit_begin, on::ready, on::step, on::epoch_end, on::fit_end>;
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

  template <class Context>
  class State;
};

template <class... Options>
template <class Context>
class BurnRate<Options...>::State {
 public:
  using dispensable = void;

  explicit State(BurnRate const& settings)
      : limit_(settings.limit),
        window_(settings.window),
        rate_(settings.window / 3600),
        levels_(settings.levels, settings.hysteresis, "BurnRate"),
        webhook_(settings.webhook),
        command_(settings.command) {}

  void on_fit_begin(FitBegin<Context>& phase) {
    auto const refuse = [](double value, char const* name) {
      throw SettingsError({.what = std::string("the ") + name + " is " + std::to_string(value),
                           .where = std::string("BurnRate::") + name,
                           .why = "no rate could be compared with it",
                           .fix = "Give more than 0."});
    };
    if (!(limit_ > 0 && std::isfinite(limit_))) refuse(limit_, "limit");
    if (!(window_ > 0 && std::isfinite(window_))) refuse(window_, "window");
    if (!phase.gauges().find(traits::gauge)) {
      throw SettingsError({.what = "the limit is in " + std::string(traits::unit),
                           .where = "BurnRate",
                           .why = std::string(traits::missing),
                           .fix = std::string(traits::fix)});
    }
    webhook_.begin("BurnRate");
    command_.begin("BurnRate");
  }

  /// A run that this has ended continues: its window is empty.
  void on_ready(Ready<Context>& phase) {
    ready_ = true;
    if (phase.stopped_by(kind::name)) phase.clear_stop();
  }

  flow on_step(Step<Context>& phase) { return look(phase); }

  flow on_epoch_end(EpochEnd<Context>& phase) { return look(phase); }

  void on_fit_end(FitEnd<Context>&) {
    webhook_.close();
    command_.close();
  }

  /// The last checkpoint is on disk before anything waits for an alert.
  template <class Next>
  void around_fit(FitRun<Context>& phase, Next&& next) {
    next();
    for (std::string const& text : {webhook_.finish("BurnRate"), command_.finish("BurnRate")}) {
      if (!text.empty()) phase.warn(text);
    }
  }

  template <class Archive>
  void persist(Archive& archive) {
    detail::Levels told = levels_;
    archive.scope("levels", [&](auto& inner) { told.persist(inner); });
    if (Archive::loading && !ready_) levels_ = told;  // a Rollback repeats no warning
  }

 private:
  flow look(Phase<Context> const& phase) {
    double const hours = phase.gauges().find("hours").value_or(0);
    if (hours == seen_) return verdict_;
    seen_ = hours;
    double const amount = phase.gauges().find(traits::gauge).value_or(0);
    auto const per_hour = rate_.look(hours, amount);
    if (!per_hour) return verdict_;
    phase.set_gauge(traits::rate, *per_hour);
    double const rate = *per_hour * Per::hours;
    bool const ends = stops && verdict_ == flow::proceed && rate >= limit_;
    if (ends) verdict_ = flow::stop;
    auto const level = levels_.look(rate / limit_);
    // A stop is always reported, also if an earlier process has reported this level.
    if (level || ends) tell(phase, level.value_or(rate / limit_), amount, rate);
    return verdict_;
  }

  void tell(Phase<Context> const& phase, double level, double amount, double rate) {
    bool const ends = verdict_ == flow::stop;
    Event event{.name = "budget",
                .fields = {{"level", level},
                           {std::string(traits::gauge), amount},
                           {"limit", limit_},
                           {"action", std::string(ends ? "stop" : "warn")},
                           {"rate", rate},
                           {"per_hours", Per::hours}}};
    notify::Alert alert{.text = "BurnRate: the run spends " + text(rate) + " " +
                                std::string(Per::text) + ", and the limit is " + text(limit_) +
                                (ends ? "; it ends here" : ""),
                        .fields = event.fields};
    alert.fields.emplace_back("spent", amount);
    alert.fields.emplace_back("unit", std::string(traits::unit));
    alert.fields.emplace_back("run", phase.settings().run_dir.string());
    alert.fields.emplace_back("step", phase.counters().step);
    phase.warn(alert.text);
    webhook_.post(alert);
    command_.post(alert);
    phase.record(std::move(event));
  }

  static std::string text(double amount) { return detail::amount_text(amount, traits::unit); }

  double limit_;
  double window_;
  detail::SlidingRate rate_;
  detail::Levels levels_;
  bool ready_ = false;
  double seen_ = -1;
  flow verdict_ = flow::proceed;
  detail::AlertLine<webhook_type> webhook_;
  detail::AlertLine<command_type> command_;
};

}  // namespace frugal
