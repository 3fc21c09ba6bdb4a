// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/core/run/run_state.hpp>

#include <frugal/core/run/failure.hpp>
#include <frugal/inline.hpp>

#include <chrono>
#include <exception>
#include <string_view>

namespace frugal {

FRUGAL_INLINE void RunState::add_validation(Metrics metrics) {
  validations.push_back({counters.epoch, counters.step, std::move(metrics)});
  judged = {judged.validations + 1, counters.micro_batch, averaged};
  bound_validations();
}

FRUGAL_INLINE bool RunState::is_judged() const {
  return judged.validations != 0 && judged.micro_batch == counters.micro_batch &&
         judged.averaged == averaged;
}

FRUGAL_INLINE double RunState::mean_loss() {
  if (!facts.agrees || facts.divides) {
    double const mean = ledger.mean();
    if (facts.divides && ledger.bad()) refuse_bad_loss();
    return mean;
  }
  LossAccumulator::Sum const here = ledger.sum();
  double const sum = reduce(Quantity::loss, ledger.bad() ? nan : here.losses);
  double const weight = reduce(Quantity::loss, here.weights);
  if (std::isnan(sum)) refuse_bad_loss();
  return weight == 0 ? nan : sum / weight;
}

FRUGAL_INLINE void RunState::read_losses() {
  ledger.read_pending();
  if (facts.divides) {
    if (ledger.bad()) refuse_bad_loss();
  } else if (facts.agrees) {
    if (std::isnan(reduce(Quantity::loss, ledger.bad() ? nan : 0.0))) refuse_bad_loss();
  }
}

FRUGAL_INLINE void RunState::refuse_bad_loss() const {
  if (ledger.bad()) std::rethrow_exception(ledger.bad());
  detail::refuse_bad_loss_elsewhere(counters);
}

FRUGAL_INLINE double RunState::seconds() const {
  std::chrono::duration<double> const spent = WallClock::now() - began;
  return seconds_before + spent.count();
}

FRUGAL_INLINE void RunState::warn(std::string const& text) {
  for (std::string const& known : warnings) {
    if (known == text) return;
  }
  warnings.push_back(text);
}

FRUGAL_INLINE void RunState::warn_measured(std::string const& text) {
  auto const words = [](std::string const& of) {
    return std::string_view(of).substr(0, of.find_first_of("0123456789"));
  };
  for (std::string& known : warnings) {
    if (words(known) != words(text)) continue;
    known = text;
    return;
  }
  warnings.push_back(text);
}

FRUGAL_INLINE void RunState::record(Event event) {
  event.at = counters;
  event.seconds = seconds();
  events.push_back(std::move(event));
  if (loop == nullptr || tells_events) return;
  // An event recorded meanwhile is delivered after this one.
  tells_events = true;
  try {
    for (std::size_t i = events.size() - 1; i < events.size(); ++i) {
      Event const next = events[i];
      loop->recorded(next);
    }
  } catch (...) {
    tells_events = false;
    throw;
  }
  tells_events = false;
}

FRUGAL_INLINE void RunState::discard_window() {
  parameters.reset_gradients();
  gradients.clear();
  ledger.reset();
  overflow = {};
  status.discard_event();
}

FRUGAL_INLINE void RunState::begin_on(c10::Device first) {
  if (device != settings.device && device != first) {
    throw SettingsError(
        {.what = "two policies begin the run on " + device.str() + " and on " + first.str(),
         .where = "on_module",
         .why = "a run begins on one device",
         .fix = "Remove one of the two policies."});
  }
  device = first;
}

FRUGAL_INLINE void RunState::resume_from(Resumed from, double seconds) {
  resumed = std::move(from);
  seconds_before = seconds;
  began = WallClock::now();
}

FRUGAL_INLINE void RunState::persist(StateWriter& archive) {
  ledger.require_good();
  persist_all(archive);
}

FRUGAL_INLINE void RunState::bound_validations() {
  if (validations.size() > most_validations) {
    validations.erase(validations.begin(), validations.end() - most_validations);
  }
  for (std::size_t i = 0; i + 1 < validations.size(); ++i) validations[i].metrics.drop_tables();
}

}  // namespace frugal
