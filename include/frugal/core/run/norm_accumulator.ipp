// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/core/run/norm_accumulator.hpp>

#include <string>
#include <utility>

#include <frugal/inline.hpp>

namespace frugal::detail {

FRUGAL_INLINE void PackedScalars::push(at::Tensor scalar) {
  if (single_.size() == a_chunk) pack();
  single_.push_back(std::move(scalar));
}

FRUGAL_INLINE void PackedScalars::pop() {
  if (single_.empty()) {
    single_ = packed_.back().unbind();
    packed_.pop_back();
  }
  single_.pop_back();
}

FRUGAL_INLINE at::Tensor PackedScalars::take() {
  if (!single_.empty()) pack();
  at::Tensor const all = packed_.size() == 1 ? packed_.front() : at::cat(packed_);
  at::Tensor host = all.cpu().to(at::kDouble);
  packed_.clear();
  return host;
}

FRUGAL_INLINE void PackedScalars::clear() {
  single_.clear();
  packed_.clear();
}

FRUGAL_INLINE void PackedScalars::pack() {
  packed_.push_back(at::stack(single_));
  single_.clear();
}

}  // namespace frugal::detail

namespace frugal {

FRUGAL_INLINE void NormAccumulator::add(at::Tensor norm, LossError::Window const& window,
                                        std::uint64_t micro_batch) {
  norms_.push(std::move(norm));
  origins_.push_back({window, micro_batch});
}

FRUGAL_INLINE NormAccumulator::Norm NormAccumulator::read_pending() {
  if (origins_.empty()) return {};
  at::Tensor const host = norms_.take();
  std::vector<Norm> const origins = std::exchange(origins_, {});
  auto const* value = static_cast<double const*>(host.const_data_ptr());
  for (Norm each : origins) {
    each.value = *value++;
    if (each.bad()) return each;
  }
  return {};
}

FRUGAL_INLINE void NormAccumulator::reset() {
  norms_.clear();
  origins_.clear();
}

}  // namespace frugal

namespace frugal::detail {

FRUGAL_INLINE NonFiniteGradientError non_finite_gradient(double norm,
                                                         LossError::Window const& window) {
  return NonFiniteGradientError(
      {.what =
           std::string("the norm of the gradients is ") + (std::isnan(norm) ? "NaN" : "infinite"),
       .where = "epoch " + std::to_string(window.epoch) + ", step " + std::to_string(window.step),
       .why = "the loss is finite, and the backward pass gives NaN or infinity, as that of sqrt or "
              "log at 0, or training diverges",
       .fix =
           "Add SkipNonFinite to skip such windows, or Rollback<> to go back, lower the learning "
           "rate, or check the objective."},
      window, norm);
}

}  // namespace frugal::detail
