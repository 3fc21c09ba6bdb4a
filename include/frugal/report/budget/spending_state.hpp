// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include <frugal/core/run/gauges.hpp>
#include <frugal/core/run/phases.hpp>
#include <frugal/core/run/settings.hpp>
#include <frugal/error.hpp>
#include <frugal/policy/kinds.hpp>
#include <frugal/report/budget/limit.hpp>

// What Budget and BurnRate have in common: both compare a gauge of CostMeter with a limit.
namespace frugal::detail {

using spending_listens =
    list<around::fit, on::fit_begin, on::ready, on::step, on::epoch_end, on::fit_end>;

inline bool is_positive(double value) { return value > 0 && std::isfinite(value); }

/// The State that both derive from: the levels that were reported, and the way of an alert to the
/// report, the log and the channels. `Traits` are the limit_traits of the policy's limit.
template <class Policy, class Traits>
class SpendingState {
 public:
  using dispensable = void;  // a run may get its limit later

  /// The last checkpoint is on disk before anything waits for an alert.
  template <class Next>
  void around_fit(FitRun& phase, Next&& next) {
    next();
    for (std::string const& text : {webhook_.finish(owner()), command_.finish(owner())}) {
      if (!text.empty()) phase.warn(text);
    }
  }

  template <class Archive>
  void persist(Archive& archive) {
    persist_levels(archive, "levels", levels_);
  }

 protected:
  SpendingState(Policy const& settings, std::vector<double> levels)
      : limit_(settings.limit),
        levels_(std::move(levels), settings.hysteresis, owner()),
        webhook_(settings.webhook),
        command_(settings.command) {}

  static std::string owner() { return std::string(Policy::kind::name); }

  /// SettingsError if CostMeter does not measure what is limited, or a channel cannot send.
  void begin(FitBegin const& phase, std::string const& limited) {
    if (!phase.gauges().find(Traits::gauge)) {
      throw SettingsError({.what = limited + " is in " + std::string(Traits::unit),
                           .where = owner(),
                           .why = std::string(Traits::missing),
                           .fix = std::string(Traits::fix)});
    }
    webhook_.begin(owner());
    command_.begin(owner());
  }
  /// Alerts that wait have their time from now on.
  void close() {
    webhook_.close();
    command_.close();
  }

  static double spent(Phase const& phase) { return phase.gauges().find(Traits::gauge).value_or(0); }

  /// A Rollback does not re-arm warnings that were sent.
  template <class Archive>
  void persist_levels(Archive& archive, char const* name, Levels& levels) {
    Levels told = levels;
    archive.scope(name, [&](auto& inner) { told.persist(inner); });
    if (Archive::loading && !ready_) levels = told;
  }

  /// Warns, records the event and posts the alert. `more` are fields of both.
  void send(Phase const& phase, double level, double amount, std::string const& action,
            std::string const& sentence,
            std::vector<std::pair<std::string, Event::Value>> const& more = {}) {
    Event event{.name = "budget",
                .fields = {{"level", level},
                           {std::string(Traits::gauge), amount},
                           {"limit", limit_},
                           {"action", action}}};
    event.fields.insert(event.fields.end(), more.begin(), more.end());
    notify::Alert alert{.text = owner() + ": " + sentence, .fields = event.fields};
    alert.fields.emplace_back("spent", amount);
    alert.fields.emplace_back("unit", std::string(Traits::unit));
    alert.fields.emplace_back("run", phase.settings().run_dir.string());
    alert.fields.emplace_back("step", phase.counters().step);
    phase.warn(alert.text);
    webhook_.post(alert);
    command_.post(alert);
    phase.record(std::move(event));
  }

  static std::string text(double amount) { return amount_text(amount, Traits::unit); }

  double limit_;
  Levels levels_;
  bool ready_ = false;  ///< the run has begun: what is loaded from now on is a Rollback's
  double seen_ = -1;    ///< the gauge when it was looked at last

 private:
  AlertLine<typename Policy::webhook_type> webhook_;
  AlertLine<typename Policy::command_type> command_;
};

}  // namespace frugal::detail
