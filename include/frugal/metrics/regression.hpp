// SPDX-License-Identifier: Apache-2.0
// Shapes: B samples, D values a sample, ... whatever one sample has.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <string_view>

#include <frugal/core/run/objective.hpp>
#include <frugal/metrics/decisions.hpp>

namespace frugal {

namespace detail {

/// Predictions and targets of one shape, in double precision.
struct Values {
  at::Tensor predicted;
  at::Tensor target;
  at::Tensor mask{};  ///< false at padding; undefined if there is none
};
/// MetricError with both shapes where they differ: broadcasting here hides mistakes.
template <class B>
Values values_of(Loss const& loss, B const& batch, std::string_view metric) {
  at::Tensor const output = output_of(loss, metric);
  at::Tensor const target = batch_target(batch);
  require_floats(metric, output);
  if (output.sizes() != target.sizes() || output.dim() == 0) {
    refuse_shapes(metric, output, target,
                  "Give both one shape [B, ...], for instance with view or squeeze.");
  }
  return {output.to(at::kDouble), target.to(at::kDouble), mask_of(batch, target)};
}

/// The mean of something over all values.
class MeanOfValues {
 public:
  void add(at::Tensor const& each, at::Tensor const& mask);
  template <class Sum>
  void reduce(Sum&& sum) {
    sum_.reduce(sum);
    count_.reduce(sum);
  }
  /// NaN where there were none.
  double mean() const { return sum_.value() / count_.value(); }
  template <class Archive>
  void persist(Archive& archive) {
    sum_.persist(archive, "sum");
    count_.persist(archive, "count");
  }

 private:
  Tally sum_;
  Tally count_;
};

}  // namespace detail

/// Mean absolute error over all values, in the target's unit: "mae". Output and target have one
/// shape [B, ...]; MetricError with both where they do not. The padding of a PaddedBatch with a
/// target for each position does not count.
class MAE {
 public:
  static constexpr std::string_view name = "mae";
  using of_values = void;  // for IgnoreIndex, which refuses it

  template <class B>
  void add(Loss const& loss, B const& batch) {
    auto const [predicted, target, mask] = detail::values_of(loss, batch, name);
    mean_.add((predicted - target).abs_(), mask);
  }
  template <class Sum>
  void reduce(Sum&& sum) {
    mean_.reduce(sum);
  }
  double result() const { return mean_.mean(); }
  template <class Archive>
  void persist(Archive& archive) {
    mean_.persist(archive);
  }

 private:
  detail::MeanOfValues mean_;
};

/// Mean squared error over all values, in the square of the target's unit: "mse". See MAE.
class MSE {
 public:
  static constexpr std::string_view name = "mse";
  using of_values = void;  // for IgnoreIndex, which refuses it

  template <class B>
  void add(Loss const& loss, B const& batch) {
    auto const [predicted, target, mask] = detail::values_of(loss, batch, name);
    mean_.add((predicted - target).square_(), mask);
  }
  template <class Sum>
  void reduce(Sum&& sum) {
    mean_.reduce(sum);
  }
  double result() const { return mean_.mean(); }
  template <class Archive>
  void persist(Archive& archive) {
    mean_.persist(archive);
  }

 private:
  detail::MeanOfValues mean_;
};

/// Coefficient of determination, 1 - residual / total sum of squares: "r2"; of targets [B, ...] the
/// mean over the values of a sample, as scikit-learn's r2_score. MetricError for a padded target. Of a constant target it is 1 where
/// all is predicted exactly, and else 0; of fewer than two samples NaN. See MAE for shapes.
///
/// Source  Chan, Golub, LeVeque (1983): sums of squares of batches are put together around their
///         means, so that a mean far from 0 costs no digits.
class R2 {
 public:
  static constexpr std::string_view name = "r2";
  using of_values = void;  // for IgnoreIndex, which refuses it

  template <class B>
  void add(Loss const& loss, B const& batch) {
    auto const [predicted, target, mask] = detail::values_of(loss, batch, name);
    if (mask.defined()) refuse_padding();
    if (target.size(0) == 0) return;
    at::Tensor const target_BD = target.reshape({target.size(0), -1});
    at::Tensor const residual_D = (predicted - target).square_().reshape(target_BD.sizes()).sum(0);
    at::Tensor const mean_D = target_BD.mean(0);
    at::Tensor const squares_D = (target_BD - mean_D).square_().sum(0);
    auto const samples = static_cast<double>(target.size(0));
    if (samples_ == 0) {
      mean_ = mean_D;
      squares_ = squares_D;
      residual_ = residual_D;
    } else {
      if (mean_.sizes() != mean_D.sizes()) refuse(mean_D.numel());
      if (mean_.device() != mean_D.device()) move_to(mean_D.device());
      double const all = samples_ + samples;
      at::Tensor const apart_D = mean_D - mean_;
      mean_ = mean_ + apart_D * (samples / all);
      squares_ = squares_ + squares_D + apart_D.square() * (samples_ * samples / all);
      residual_ = residual_ + residual_D;
    }
    samples_ += samples;
  }
  /// Each process needs at least one batch: one without knows no shape.
  template <class Sum>
  void reduce(Sum&& sum) {
    if (samples_ == 0) return;
    double const all = sum(samples_);
    at::Tensor const mean_D = sum(mean_ * samples_) / all;
    squares_ = sum(squares_ + (mean_ - mean_D).square() * samples_);
    residual_ = sum(residual_);
    mean_ = mean_D;
    samples_ = all;
  }
  double result() const;
  template <class Archive>
  void persist(Archive& archive) {
    archive("samples", samples_);
    archive("mean", mean_);
    archive("squares", squares_);
    archive("residual", residual_);
  }

 private:
  [[noreturn]] void refuse(std::int64_t values) const;
  [[noreturn]] static void refuse_padding();

  // A run may go on on another device.
  void move_to(at::Device device);

  double samples_ = 0;
  at::Tensor mean_, squares_, residual_;  ///< [D]
};

}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/metrics/regression.ipp>
#endif
