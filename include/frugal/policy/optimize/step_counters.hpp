// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>

#include <cstddef>
#include <vector>

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
  void add(at::Tensor const& parameter);

  at::Tensor const& operator[](std::size_t i) const { return counters_[i]; }

  /// Selects the parameters that count from now on. Waits for the device once.
  void choose(std::vector<std::size_t> const& parameters);

  /// The distinct tensors of the selected parameters.
  std::vector<at::Tensor> const& counting() const { return counting_; }

  /// Counts a step. `in_place`: counters in host memory are plain numbers, and need no operator.
  void count(bool in_place, at::Tensor const& overflow);
  /// Ends the step. It counts unless a flag says otherwise.
  void end_step();

  bool has_begun(std::size_t i) const { return begun_[i]; }
  /// Whether every counting parameter is certain to have begun, whatever overflows have undone.
  bool all_surely_begun() const { return all_surely_begun_; }
  bool some_have_begun() const { return some_have_begun_; }
  /// Whether this is the first step of some selected parameters but not of all.
  bool mixed() const { return some_have_begun_ && !all_have_begun_; }

  /// Reads all counters; waits for the device once.
  std::vector<double> read();

  /// Loads one counter, onto its parameter's device, which may have changed since its creation.
  void set(std::size_t i, at::Tensor const& parameter, double count);

 private:
  static at::Tensor counter_at(at::Tensor const& parameter, double count) {
    return at::full({}, count, parameter.options().dtype(at::kFloat).requires_grad(false));
  }

  void look_who_has_begun();

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

#ifndef FRUGAL_COMPILED
#include <frugal/policy/optimize/step_counters.ipp>
#endif
