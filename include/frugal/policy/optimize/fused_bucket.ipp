// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/policy/optimize/fused_bucket.hpp>

#include <frugal/core/run/loss_accumulator.hpp>
#include <frugal/error.hpp>
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

FRUGAL_INLINE FusedBucket::FusedBucket(double lr, double weight_decay, std::size_t moments)
    : lr_(lr), weight_decay_(weight_decay), moments_(moments) {}

FRUGAL_INLINE void FusedBucket::add(std::string name, at::Tensor const& parameter,
                                    std::optional<TensorPart> part) {
  names_.push_back(std::move(name));
  parameters_.push_back(parameter);
  parts_.push_back(std::move(part));
  counters_.add(parameter);
  for (auto& moment : moments_) moment.emplace_back();
}

FRUGAL_INLINE at::Tensor const& FusedBucket::scaled_rate(at::Tensor const& factor) {
  if (!rate_.defined()) {
    rate_ = at::empty({}, factor.options().dtype(factor.is_cpu() ? at::kDouble : at::kFloat));
  }
  return at::mul_out(rate_, factor, at::scalar_tensor(lr_, at::kDouble));
}

FRUGAL_INLINE at::Tensor FusedBucket::unfilled_like(at::Tensor const& parameter) {
  return at::empty_like(parameter, at::TensorOptions().requires_grad(false),
                        at::MemoryFormat::Preserve);
}

FRUGAL_INLINE void FusedBucket::gather() {
  gradients_.clear();
  changed_ = false;
  std::size_t at = 0;
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    at::Tensor const& gradient = parameters_[i].grad();
    if (!gradient.defined()) continue;
    changed_ = changed_ || at >= active_ || chosen_[at] != i;
    ++at;
    gradients_.push_back(gradient);
  }
  changed_ = changed_ || at != active_;
}

FRUGAL_INLINE void FusedBucket::regroup(std::vector<double> const& initial, bool whole) {
  active_ = 0;  // until all of it is done: waiting for a device may throw
  chosen_.clear();
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    if (whole || parameters_[i].grad().defined()) chosen_.push_back(i);
  }
  moved_ = true;
  counters_.choose(chosen_);
  lists_ = {.parameters = {}, .moments = {moments_.size(), std::vector<at::Tensor>{}}, .steps = {}};
  for (std::size_t const i : chosen_) {
    if (parameters_[i].grad().layout() != at::kStrided) refuse_sparse(i);
    lists_.parameters.push_back(parameters_[i]);
    lists_.steps.push_back(counters_[i]);
    for (std::size_t m = 0; m < moments_.size(); ++m) {
      if (!moments_[m][i].defined()) {
        moments_[m][i] =
            at::full_like(parameters_[i], initial[m], at::TensorOptions().requires_grad(false),
                          at::MemoryFormat::Preserve);
      }
      lists_.moments[m].push_back(moments_[m][i]);
    }
  }
  active_ = chosen_.size();
}

FRUGAL_INLINE std::vector<at::Tensor> const& FusedBucket::as_the_parameters(
    std::vector<at::Tensor> const& gradients) {
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    at::Tensor const& like = lists_.parameters[i];
    if (gradients[i].strides() == like.strides()) continue;
    if (aligned_.empty()) aligned_ = gradients;
    aligned_[i] =
        at::empty_like(like, at::TensorOptions().requires_grad(false), at::MemoryFormat::Preserve)
            .copy_(gradients[i]);
  }
  return aligned_.empty() ? gradients : aligned_;
}

FRUGAL_INLINE void FusedBucket::refuse_sparse(std::size_t i) const {
  throw SettingsError({.what = "parameter '" + names_[i] + "' has a sparse gradient",
                       .where = "Optimize",
                       .why = "the fused kernels take dense gradients",
                       .fix = "Build the embedding with sparse(false), or use Optimize<Any> "
                              "with torch::optim::SGD or Adagrad."});
}

}  // namespace frugal::detail
