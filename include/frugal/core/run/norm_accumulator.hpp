// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <frugal/core/run/packed_scalars.hpp>
#include <frugal/error.hpp>
#include <frugal/inline.hpp>

namespace frugal {

/// Norms of gradients that are still on a device, one for each window. They are read together, when
/// the losses are, so that no step waits.
class NormAccumulator {
 public:
  static constexpr std::size_t a_chunk = detail::PackedScalars::a_chunk;

  /// A norm, and where it comes from.
  struct Norm {
    LossError::Window window{};
    std::uint64_t micro_batch = 0;  ///< of the run, after its window
    double value = 0;
    bool bad() const { return !std::isfinite(value); }
  };

  FRUGAL_INLINE void add(at::Tensor norm, LossError::Window const& window,
                         std::uint64_t micro_batch) {
    norms_.push(std::move(norm));
    origins_.push_back({window, micro_batch});
  }

  /// Reads all norms, with one wait, and returns the first that is bad; one that is not, if there
  /// is none.
  FRUGAL_INLINE Norm read_pending() {
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

  FRUGAL_INLINE void reset() {
    norms_.clear();
    origins_.clear();
  }

 private:
  detail::PackedScalars norms_;
  std::vector<Norm> origins_;  // their values are to be read
};

namespace detail {

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

}  // namespace detail

}  // namespace frugal
