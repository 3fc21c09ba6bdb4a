// SPDX-License-Identifier: Apache-2.0
// Shapes: B samples, C classes, ... whatever one sample has.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

#include <frugal/core/source/shape_text.hpp>
#include <frugal/core/source/tensor_identity.hpp>
#include <frugal/error.hpp>

namespace frugal {

/// A weight for each of C classes, of an objective: `{1.0, 5.0}`, a vector or a tensor [C]. None by
/// default, which is 1 for each.
///
/// SettingsError for a weight that is negative or not finite, and for a tensor of another shape.
class ClassWeights {
 public:
  ClassWeights() = default;
  ClassWeights(std::initializer_list<double> weights) : ClassWeights(std::vector(weights)) {}
  ClassWeights(std::vector<double> const& weights)
      : ClassWeights(at::tensor(weights, at::TensorOptions(at::kDouble))) {}
  ClassWeights(at::Tensor const& weights_C) : weights_(weights_C.detach().to(at::kDouble)) {
    at::Tensor const host = weights_.cpu();
    if (host.dim() == 1 && host.numel() > 0 && host.isfinite().all().item<bool>() &&
        host.ge(0).all().item<bool>()) {
      return;
    }
    throw SettingsError(
        {.what = "these are no class weights",
         .where = "ClassWeights",
         .why = detail::shape_text(weights_C) + ", and a weight is 0 or more for each of C classes",
         .fix = "Give C finite numbers, such as {1.0, 5.0}."});
  }

  bool empty() const { return !weights_.defined(); }
  /// For a comparison with those of another run.
  std::string identity() const { return detail::tensor_identity(weights_); }

  /// [C] where the logits are, of their type. Copied there once. ShapeError with both numbers if
  /// there are not `classes` weights.
  at::Tensor const& of(std::int64_t classes, at::Tensor const& logits, char const* where) const;

 private:
  at::Tensor weights_;         // [C], double
  mutable at::Tensor placed_;  // where they were used last
};

}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/core/run/class_weights.ipp>
#endif
