// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <torch/nn/module.h>

#include <vector>

namespace frugal::detail {

/// The buffers of a module that can become NaN or infinite, such as BatchNorm's running statistics,
/// as they were before a window. A forward pass writes them before it is known that its window is
/// skipped, and a running mean that is NaN stays NaN.
///
/// They are put back together if one is not finite. Finite ones of a skipped window stay, as in
/// PyTorch: those of a window whose gradients alone overflowed.
class KeptBuffers {
 public:
  /// Call it when the fit begins. A number that is infinite or NaN from the start, such as that of a mask
  /// or of a range that has seen nothing, is bad only if it becomes another one that is not finite.
  void begin(torch::nn::Module& module);
  bool empty() const { return buffers_.empty(); }

  /// Copies them, before a window. One operator for each type and device.
  void take();

  /// Puts them back if one is not finite and `skipped`, a scalar on any device, is not 0. Of
  /// operators alone, so that it can be captured; no host sync, unless the flag is on a
  /// device and a buffer is not.
  void put_back(at::Tensor const& skipped);
  /// Whether one has become bad since take(). Waits for the device.
  bool is_bad() const;
  /// Puts them back if one of any process was bad.
  void put_back(bool bad);

 private:
  struct Group {
    std::vector<at::Tensor> buffers;
    at::Tensor kept;     ///< [number of all elements]
    bool finite = true;  ///< all of them were when the fit began

    at::Tensor good(at::Tensor const& now, at::Tensor const& before) const;
  };

  void group();

  static std::vector<at::Tensor> flat(std::vector<at::Tensor> const& tensors);
  static std::vector<at::Tensor> parts(at::Tensor const& all, std::vector<at::Tensor> const& like);

  std::vector<at::Tensor> buffers_;
  std::vector<bool> finite_;   ///< when the fit began
  std::vector<Group> groups_;  ///< by type and device; once take() was called
};

}  // namespace frugal::detail

#ifndef FRUGAL_COMPILED
#include <frugal/core/state/kept_buffers.ipp>
#endif
