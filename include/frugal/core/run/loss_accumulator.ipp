// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/core/run/loss_accumulator.hpp>

#include <frugal/inline.hpp>

#include <string>

namespace frugal::detail {

FRUGAL_INLINE double host_scalar(at::Tensor const& scalar) {
  switch (scalar.scalar_type()) {
    case at::kFloat:
      return static_cast<double>(*static_cast<float const*>(scalar.const_data_ptr()));
    case at::kDouble:
      return *static_cast<double const*>(scalar.const_data_ptr());
    case at::kBFloat16:
      return static_cast<double>(*static_cast<at::BFloat16 const*>(scalar.const_data_ptr()));
    default:
      return scalar.item<double>();
  }
}

}  // namespace frugal::detail

namespace frugal {

FRUGAL_INLINE void LossAccumulator::add(at::Tensor const& loss, double weight, Counters const& at) {
  if (weight == 0) [[unlikely]]
    return;
  if (loss.is_cpu() && host_ != Reading::when_asked) {
    enter(detail::host_scalar(loss), weight, origin_of(at));
  } else {
    losses_.push(loss.detach());
    pending_.push_back({weight, origin_of(at)});
  }
}

FRUGAL_INLINE void LossAccumulator::read_pending() {
  scalars_.read_pending();
  NormAccumulator::Norm norm = norms_.read_pending();
  if (pending_.empty()) return refuse_bad(norm);
  at::Tensor const host = losses_.take();
  std::vector<Pending> entries;
  entries.swap(pending_);
  double const* value = static_cast<double const*>(host.const_data_ptr());
  for (Pending const& entry : entries) {
    if (entry.origin.micro_batch >= norm.micro_batch) refuse_bad(norm);
    enter(*value++, entry.weight, entry.origin);
  }
  refuse_bad(norm);
}

FRUGAL_INLINE double LossAccumulator::mean() {
  read_pending();
  return weight_ == 0 ? std::numeric_limits<double>::quiet_NaN() : sum_ / weight_;
}

FRUGAL_INLINE LossAccumulator::Sum LossAccumulator::sum() {
  read_pending();
  return {sum_, weight_};
}

FRUGAL_INLINE double LossAccumulator::last() {
  read_pending();
  return last_;
}

FRUGAL_INLINE void LossAccumulator::require_good() {
  read_pending();
  if (bad_) std::rethrow_exception(bad_);
}

FRUGAL_INLINE void LossAccumulator::reset() {
  bad_ = nullptr;
  pending_.clear();
  losses_.clear();
  norms_.reset();
  scalars_.reset();
  sum_ = weight_ = window_weight_ = 0;
}

FRUGAL_INLINE LossAccumulator::Mark LossAccumulator::mark() {
  return {pending_.size(), sum_,    weight_,         last_,
          window_weight_,  window_, bad_ != nullptr, scalars_.mark()};
}

FRUGAL_INLINE void LossAccumulator::go_back(Mark const& mark) {
  scalars_.go_back(mark.scalars);
  while (pending_.size() > mark.pending) {
    losses_.pop();
    pending_.pop_back();
  }
  sum_ = mark.sum;
  weight_ = mark.weight;
  last_ = mark.last;
  window_weight_ = mark.window_weight;
  window_ = mark.window;
  if (!mark.bad) bad_ = nullptr;
}

FRUGAL_INLINE void LossAccumulator::enter(double value, double weight, Origin const& origin) {
  if (!std::isfinite(value)) [[unlikely]] {
    if (leaves_bad_losses_) return;
    refuse(error_of(value, origin));
  }
  sum_ += value * weight;
  weight_ += weight;
  if (window_weight_ == 0 || origin.window != window_) {
    window_ = origin.window;
    window_weight_ = weight;
    last_ = value;
  } else {
    // A running mean: of one loss, or of equal ones, it is that loss to the bit.
    window_weight_ += weight;
    last_ += (value - last_) * (weight / window_weight_);
  }
}

FRUGAL_INLINE void LossAccumulator::refuse_bad(NormAccumulator::Norm& norm) {
  if (!norm.bad()) return;
  refuse(detail::non_finite_gradient(std::exchange(norm.value, 0), norm.window));
}

FRUGAL_INLINE NonFiniteLossError LossAccumulator::error_of(double value, Origin const& origin) {
  return NonFiniteLossError(
      {.what = std::string("the loss is ") + (std::isnan(value) ? "NaN" : "infinite"),
       .where = "epoch " + std::to_string(origin.window.epoch) + ", step " +
                std::to_string(origin.window.step) + ", micro-batch " +
                std::to_string(origin.micro_batch),
       .why = "training diverged, or a sample holds NaN",
       .fix = "Lower the learning rate, add Schedule<Warmup<...>> or ClipNorm<>, or check the "
              "samples of that micro-batch."},
      origin.window, value);
}

}  // namespace frugal
