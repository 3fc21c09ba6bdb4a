// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>

#include <concepts>
#include <cstddef>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <frugal/core/libtorch/parameters.hpp>
#include <frugal/core/state/tensor_part.hpp>

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

/// The arguments of a fused kernel: lists of equal length, one entry per parameter.
struct FusedLists {
  std::vector<at::Tensor> parameters;
  std::vector<std::vector<at::Tensor>> moments;  ///< one list per moment
  std::vector<at::Tensor> steps;                 ///< float scalars that already count this step
};

/// `Rate` is double, or a tensor if the step is captured.
template <class Rate>
struct FusedStep {
  FusedLists const& lists;
  std::vector<at::Tensor> const& gradients;
  Rate lr;
  double weight_decay;
  bool first;                          ///< the first step of every parameter in the lists
  std::optional<at::Tensor> overflow;  ///< if 1, the kernel changes nothing
};

/// Parameters that one kernel call updates: the same settings, one device, one dtype.
///
/// The kernels process parameter, gradient and moments in memory order, so all four must have the
/// same layout.
class FusedBucket {
 public:
  FusedBucket(double lr, double weight_decay, std::size_t moments);

  /// `part`: of which parameter `parameter` is a part, unless it is whole.
  void add(std::string name, at::Tensor const& parameter,
           std::optional<TensorPart> part = std::nullopt);

  /// One kernel call; two if only some parameters make their first step (SGD), or if only the
  /// device knows that. With a tensor as factor, no host number enters the call, so that the step
  /// can be captured.
  template <class Rule, class Factor>
  void step(Rule const& rule, GradientList const& all, Factor const& factor,
            at::Tensor const& overflow) {
    constexpr bool on_host = std::same_as<Factor, double>;
    bool const whole = all.complete() && all.tensors().size() == parameters_.size();
    if (!whole) gather();
    std::vector<at::Tensor> const& gradients = whole ? all.tensors() : gradients_;
    if (gradients.empty()) return;
    if (whole ? active_ != parameters_.size() : changed_) regroup(initial_values(rule), whole);
    std::vector<at::Tensor> const& laid_out = as_the_parameters(gradients);
    counters_.count(on_host, overflow);
    auto const lr = scaled_rate(factor);
    auto const flag = overflow.defined() ? std::optional(overflow) : std::nullopt;
    FusedStep<Rate<Factor>> const step{
        lists_, laid_out, lr, weight_decay_, !counters_.some_have_begun(), flag};
    if (!rule.has_first_step()) {
      rule.apply(step);
    } else if (flag && !counters_.all_surely_begun()) {
      step_with_device_flags(rule, step);
    } else if (counters_.mixed()) {
      apply_to(rule, step, true, flag, [&](std::size_t i) { return !counters_.has_begun(i); });
      apply_to(rule, step, false, flag, [&](std::size_t i) { return counters_.has_begun(i); });
    } else {
      rule.apply(step);
    }
    counters_.end_step();
    gradients_.clear();
    aligned_.clear();
  }

  /// Whether tensors of its state were reallocated since the last call of this function.
  bool moved() { return std::exchange(moved_, false); }

  template <class Rule, class Archive>
  void persist(Rule const& rule, Archive& archive) {
    std::vector<double> counts(parameters_.size());
    if (!Archive::loading) counts = counters_.read();
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
      archive.scope(names_[i], [&](auto& inner) {
        double count = counts[i];
        inner("step", count);
        if (Archive::loading) counters_.set(i, parameters_[i], count);
        for (std::size_t m = 0; m < moments_.size(); ++m) {
          // An archive fills an existing tensor on its device, and refuses another shape.
          if (Archive::loading) moments_[m][i] = unfilled_like(parameters_[i]);
          if (parts_[i]) {
            inner.part(rule.moment_name(m), moments_[m][i], *parts_[i]);
          } else {
            inner(rule.moment_name(m), moments_[m][i]);
          }
        }
      });
    }
    if (Archive::loading) active_ = 0;  // the lists are rebuilt at the next step
  }

 private:
  template <class Factor>
  using Rate = std::conditional_t<std::same_as<Factor, double>, double, at::Tensor>;

  double scaled_rate(double factor) const { return lr_ * factor; }
  /// CUDA's kernels take a float rate, the CPU's a double. Writes to a persistent tensor: one
  /// kernel that multiplies and rounds.
  at::Tensor const& scaled_rate(at::Tensor const& factor);

  static at::Tensor unfilled_like(at::Tensor const& parameter);

  // Collects the gradients of parameters that have one, and detects whether these changed.
  void gather();

  template <class Rule>
  std::vector<double> initial_values(Rule const& rule) const {
    std::vector<double> values(moments_.size());
    for (std::size_t m = 0; m < values.size(); ++m) values[m] = rule.initial(m);
    return values;
  }

  void regroup(std::vector<double> const& initial, bool whole);

  /// Gradients in their parameters' layout: unchanged if they have it, which autograd ensures.
  std::vector<at::Tensor> const& as_the_parameters(std::vector<at::Tensor> const& gradients);

  /// Makes a step if an overflow may have undone one that the host counted as the first. Both
  /// kernels are called for each counter's parameters, and a flag on the device disables one of
  /// them.
  template <class Rule, class Rate>
  void step_with_device_flags(Rule const& rule, FusedStep<Rate> const& step) {
    for (at::Tensor const& counter : counters_.counting()) {
      // The counter includes this step already, unless the step overflows.
      at::Tensor const begun = counter.gt(1).to(at::kFloat);
      auto const counts = [&](std::size_t i) { return counters_[i].is_same(counter); };
      apply_to(rule, step, true, at::maximum(*step.overflow, begun), counts);
      apply_to(rule, step, false, at::maximum(*step.overflow, 1 - begun), counts);
    }
  }

  /// Applies the kernel only to parameters whose index satisfies `which`.
  template <class Rule, class Rate, class Which>
  void apply_to(Rule const& rule, FusedStep<Rate> const& step, bool first,
                std::optional<at::Tensor> const& overflow, Which const& which) {
    FusedLists some{
        .parameters = {}, .moments = {moments_.size(), std::vector<at::Tensor>{}}, .steps = {}};
    std::vector<at::Tensor> gradients;
    for (std::size_t i = 0; i < active_; ++i) {
      if (!which(chosen_[i])) continue;
      some.parameters.push_back(lists_.parameters[i]);
      some.steps.push_back(lists_.steps[i]);
      for (std::size_t m = 0; m < moments_.size(); ++m) {
        some.moments[m].push_back(lists_.moments[m][i]);
      }
      gradients.push_back(step.gradients[i]);
    }
    if (gradients.empty()) return;
    rule.apply(FusedStep<Rate>{some, gradients, step.lr, weight_decay_, first, overflow});
  }

  [[noreturn]] void refuse_sparse(std::size_t i) const;

  double lr_;
  double weight_decay_;
  std::vector<std::string> names_;
  std::vector<std::optional<TensorPart>> parts_;  ///< for those that are parts of a parameter
  std::vector<at::Tensor> parameters_;
  StepCounters counters_;
  std::vector<std::vector<at::Tensor>> moments_;

  std::vector<std::size_t> chosen_;  // parameters in the lists
  std::size_t active_ = 0;           // how many
  FusedLists lists_;
  at::Tensor rate_;  // the rate on the device
  std::vector<at::Tensor> gradients_;
  std::vector<at::Tensor> aligned_;  // replacements for gradients with another layout
  bool changed_ = false;
  bool moved_ = false;
};

}  // namespace frugal::detail

#ifndef FRUGAL_COMPILED
#include <frugal/policy/optimize/fused_bucket.ipp>
#endif
