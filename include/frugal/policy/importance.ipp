// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/policy/importance.hpp>

#include <frugal/error.hpp>
#include <frugal/inline.hpp>

namespace frugal::detail {

FRUGAL_INLINE at::Tensor means_of_samples(at::Tensor const& values, at::Tensor const& counts) {
  if (values.dim() <= 1) return values;
  if (!counts.defined()) return values.flatten(1).mean(1);
  at::Tensor mask = counts;
  while (mask.dim() < values.dim()) mask = mask.unsqueeze(-1);
  mask = mask.expand_as(values).flatten(1);
  at::Tensor const sums = at::where(mask, values.flatten(1), at::Scalar(0)).sum(1);
  return sums / mask.sum(1).clamp_min(1);
}

FRUGAL_INLINE void refuse_class_weights() {
  throw SettingsError({.what = "Importance cannot estimate a mean over class weights",
                       .where = "CrossEntropy::class_weights",
                       .why =
                           "it weighs samples by how they were drawn, and such a mean divides by "
                           "the weights of a batch's labels",
                       .fix = "Remove the class weights, or write an objective with a member "
                              "sample_losses that multiplies by them."});
}

}  // namespace frugal::detail
