// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/policy/optimize/step_counters.hpp>

#include <frugal/core/run/loss_accumulator.hpp>
#include <frugal/inline.hpp>

#include <map>

namespace frugal::detail {

FRUGAL_INLINE void StepCounters::add(at::Tensor const& parameter) {
  counters_.push_back(counter_at(parameter, 0));
  begun_.push_back(false);
  sure_.push_back(false);
}

FRUGAL_INLINE void StepCounters::choose(std::vector<std::size_t> const& parameters) {
  chosen_ = parameters;
  std::vector<double> const counts = read();
  bool alike = true;
  for (std::size_t const i : chosen_) alike = alike && counts[i] == counts[chosen_.front()];
  counting_.clear();
  for (std::size_t const i : chosen_) {
    // A copy: parameters that are no longer selected may share the old tensor.
    if (!alike || counting_.empty()) counting_.push_back(counters_[i].clone());
    counters_[i] = counting_.back();
  }
  look_who_has_begun();
}

FRUGAL_INLINE void StepCounters::count(bool in_place, at::Tensor const& overflow) {
  for (at::Tensor const& counter : counting_) {
    if (in_place && counter.is_cpu()) {
      *counter.data_ptr<float>() += 1.0F;
    } else {
      counter.add_(1);
      // The flag may still be in flight on the device: subtract it there.
      if (overflow.defined()) counter.sub_(overflow);
    }
  }
}

FRUGAL_INLINE void StepCounters::end_step() {
  if (all_have_begun_) return;
  for (std::size_t const i : chosen_) begun_[i] = true;
  look_who_has_begun();
}

FRUGAL_INLINE std::vector<double> StepCounters::read() {
  std::vector<at::Tensor> distinct;
  std::vector<std::size_t> which;
  std::map<at::TensorImpl const*, std::size_t> known;
  for (at::Tensor const& each : counters_) {
    auto const [entry, is_new] = known.emplace(each.unsafeGetTensorImpl(), distinct.size());
    if (is_new) distinct.push_back(each);
    which.push_back(entry->second);
  }
  std::vector<double> values;
  values.reserve(distinct.size());
  if (!distinct.empty() && !distinct.front().is_cpu()) {
    at::Tensor const host = at::stack(distinct).cpu();
    for (std::size_t i = 0; i < distinct.size(); ++i) distinct[i] = host[static_cast<long>(i)];
  }
  for (at::Tensor const& each : distinct) values.push_back(host_scalar(each));
  std::vector<double> counts;
  counts.reserve(which.size());
  for (std::size_t const i : which) counts.push_back(values[i]);
  for (std::size_t i = 0; i < counts.size(); ++i) sure_[i] = begun_[i] = counts[i] != 0;
  look_who_has_begun();
  return counts;
}

FRUGAL_INLINE void StepCounters::set(std::size_t i, at::Tensor const& parameter, double count) {
  counters_[i] = counter_at(parameter, count);
  sure_[i] = begun_[i] = count != 0;
}

FRUGAL_INLINE void StepCounters::look_who_has_begun() {
  some_have_begun_ = false;
  all_have_begun_ = true;
  all_surely_begun_ = true;
  for (std::size_t const i : chosen_) {
    some_have_begun_ = some_have_begun_ || begun_[i];
    all_have_begun_ = all_have_begun_ && begun_[i];
    all_surely_begun_ = all_surely_begun_ && sure_[i];
  }
}

}  // namespace frugal::detail
