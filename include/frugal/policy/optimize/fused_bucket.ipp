// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/policy/optimize/fused_bucket.hpp>

#include <frugal/error.hpp>
#include <frugal/inline.hpp>

namespace frugal::detail {

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
