// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>

#include <cstddef>
#include <map>
#include <vector>

#include <frugal/core/run/loss_accumulator.hpp>
#include <frugal/inline.hpp>

namespace frugal::detail {

/// The number of steps of each parameter in a bucket, as float scalars on the parameters' device,
/// as fused kernels require.
///
/// Parameters with equal counts share one tensor, so that counting costs one operation instead of
/// one per tensor. A parameter without a gradient does not count that step (as in PyTorch), and the
/// counters split. The host tracks which parameters have begun: no step reads them from a device.
/// If the overflow flag is on the device, the host is certain only after the counters are read, as
/// a save does.
class StepCounters {
 public:
  FRUGAL_INLINE void add(at::Tensor const& parameter) {
    counters_.push_back(counter_at(parameter, 0));
    begun_.push_back(false);
    sure_.push_back(false);
  }

  at::Tensor const& operator[](std::size_t i) const { return counters_[i]; }

  /// Selects the parameters that count from now on. Waits for the device once.
  FRUGAL_INLINE void choose(std::vector<std::size_t> const& parameters) {
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

  /// The distinct tensors of the selected parameters.
  std::vector<at::Tensor> const& counting() const { return counting_; }

  /// Counts a step. `in_place`: counters in host memory are plain numbers, and need no operator.
  FRUGAL_INLINE void count(bool in_place, at::Tensor const& overflow) {
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
  /// Ends the step. It counts unless a flag says otherwise.
  FRUGAL_INLINE void end_step() {
    if (all_have_begun_) return;
    for (std::size_t const i : chosen_) begun_[i] = true;
    look_who_has_begun();
  }

  bool has_begun(std::size_t i) const { return begun_[i]; }
  /// Whether every counting parameter is certain to have begun, whatever overflows have undone.
  bool all_surely_begun() const { return all_surely_begun_; }
  bool some_have_begun() const { return some_have_begun_; }
  /// Whether this is the first step of some selected parameters but not of all.
  bool mixed() const { return some_have_begun_ && !all_have_begun_; }

  /// Reads all counters; waits for the device once.
  FRUGAL_INLINE std::vector<double> read() {
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

  /// Loads one counter, onto its parameter's device, which may have changed since its creation.
  FRUGAL_INLINE void set(std::size_t i, at::Tensor const& parameter, double count) {
    counters_[i] = counter_at(parameter, count);
    sure_[i] = begun_[i] = count != 0;
  }

 private:
  static at::Tensor counter_at(at::Tensor const& parameter, double count) {
    return at::full({}, count, parameter.options().dtype(at::kFloat).requires_grad(false));
  }

  FRUGAL_INLINE void look_who_has_begun() {
    some_have_begun_ = false;
    all_have_begun_ = true;
    all_surely_begun_ = true;
    for (std::size_t const i : chosen_) {
      some_have_begun_ = some_have_begun_ || begun_[i];
      all_have_begun_ = all_have_begun_ && begun_[i];
      all_surely_begun_ = all_surely_begun_ && sure_[i];
    }
  }

  std::vector<at::Tensor> counters_;
  std::vector<bool> begun_;
  std::vector<bool> sure_;  // whether a read counter has confirmed it
  std::vector<std::size_t> chosen_;
  std::vector<at::Tensor> counting_;  // the distinct tensors of the selected parameters
  bool some_have_begun_ = false;
  bool all_have_begun_ = false;
  bool all_surely_begun_ = false;
};

}  // namespace frugal::detail
