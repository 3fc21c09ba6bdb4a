// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <frugal/error.hpp>

namespace frugal::detail {

/// Scalars of one device that stay there until all are read together, with one wait. The smallest
/// tensor takes an allocator 512 bytes, so they are packed on the device, `a_chunk` at a time.
class PackedScalars {
 public:
  static constexpr std::size_t a_chunk = 4096;

  void push(at::Tensor scalar);
  /// Removes the newest.
  void pop();

  /// Takes all out, oldest first, as doubles in host memory. There must be one.
  at::Tensor take();

  void clear();

 private:
  void pack();

  std::vector<at::Tensor> packed_;  // first these,
  std::vector<at::Tensor> single_;  // then these
};

}  // namespace frugal::detail

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

  void add(at::Tensor norm, LossError::Window const& window, std::uint64_t micro_batch);

  /// Reads all norms, with one wait, and returns the first that is bad; one that is not, if there
  /// is none.
  Norm read_pending();

  void reset();

 private:
  detail::PackedScalars norms_;
  std::vector<Norm> origins_;  // their values are to be read
};

namespace detail {

NonFiniteGradientError non_finite_gradient(double norm, LossError::Window const& window);

}  // namespace detail

}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/core/run/norm_accumulator.ipp>
#endif
