// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/core/run/observed.hpp>

#include <frugal/core/run/log_keys.hpp>
#include <frugal/inline.hpp>

namespace frugal {

FRUGAL_INLINE void Observed::add_validation(Metrics metrics, Counters const& at) {
  validations_.push_back({at.epoch, at.step, std::move(metrics)});
  judged_ = {judged_.validations + 1, at.micro_batch, averaged_};
  bound_validations();
}

FRUGAL_INLINE bool Observed::is_judged(Counters const& now) const {
  return judged_.validations != 0 && judged_.micro_batch == now.micro_batch &&
         judged_.averaged == averaged_;
}

FRUGAL_INLINE void Observed::bound_validations() {
  if (validations_.size() > most_validations) {
    validations_.erase(validations_.begin(), validations_.end() - most_validations);
  }
  for (std::size_t i = 0; i + 1 < validations_.size(); ++i) {
    validations_[i].metrics.drop_tables();
  }
}

FRUGAL_INLINE void Observed::set_gauge(std::string_view name, double value) {
  detail::require_log_name("a gauge", name, "set_gauge");
  gauges_.set(name, value);
}

FRUGAL_INLINE void Observed::warn(std::string const& text) {
  for (std::string const& known : warnings_) {
    if (known == text) return;
  }
  warnings_.push_back(text);
}

FRUGAL_INLINE void Observed::warn_of_plan(std::string const& text) {
  warn(text);
  plans_.push_back(text);
}

FRUGAL_INLINE void Observed::warn_measured(std::string const& text) {
  auto const words = [](std::string const& of) {
    return std::string_view(of).substr(0, of.find_first_of("0123456789"));
  };
  for (std::string& known : warnings_) {
    if (words(known) != words(text)) continue;
    known = text;
    return;
  }
  warnings_.push_back(text);
}

FRUGAL_INLINE void Observed::warn_again(std::string_view begin, std::string text) {
  for (std::string& known : warnings_) {
    if (!known.starts_with(begin)) continue;
    known = std::move(text);
    return;
  }
  warnings_.push_back(std::move(text));
}

FRUGAL_INLINE void Observed::add_event(Event event, FunctionRef<void(Event const&)> tell) {
  events_.push_back(std::move(event));
  if (tells_) return;
  tells_ = true;
  try {
    for (std::size_t i = events_.size() - 1; i < events_.size(); ++i) {
      Event const next = events_[i];
      tell(next);
    }
  } catch (...) {
    tells_ = false;
    throw;
  }
  tells_ = false;
}

}  // namespace frugal
