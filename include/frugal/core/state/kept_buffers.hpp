// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <torch/nn/module.h>

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <frugal/core/libtorch/finite.hpp>
#include <frugal/inline.hpp>

namespace frugal::detail {

/// The buffers of a module that can become NaN or infinite, such as BatchNorm's running statistics,
/// as they were before a window. A forward pass writes them before it is known that its window is
/// skipped, and a running mean that is NaN stays NaN.
///
/// They are put back together if one is not finite. Finite ones of a skipped window stay, as in
/// PyTorch: those of a window whose gradients alone overflowed.
class KeptBuffers {
 public:
  /// Call it when the fit begins. A constant that is not finite from the start is left out.
  FRUGAL_INLINE void begin(torch::nn::Module& module) {
    buffers_.clear();
    groups_.clear();
    for (at::Tensor const& buffer : module.buffers()) {
      if (numbers_of(buffer).defined() && buffer.layout() == at::kStrided &&
          !first_non_finite({buffer})) {
        buffers_.push_back(buffer);
      }
    }
  }
  bool empty() const { return buffers_.empty(); }

  /// Copies them, before a window. One operator for each type and device.
  FRUGAL_INLINE void take() {
    if (buffers_.empty()) return;
    at::NoGradGuard const no_gradients;
    if (groups_.empty() || groups_.front().kept.device() != buffers_.front().device()) group();
    for (Group& each : groups_) at::cat_out(each.kept, flat(each.buffers));
  }

  /// Puts them back if one is not finite and `skipped`, a scalar on any device, is not 0. Of
  /// operators alone, so that it can be captured; no host sync.
  FRUGAL_INLINE void put_back(at::Tensor const& skipped) {
    at::NoGradGuard const no_gradients;
    for (Group const& each : groups_) {
      at::Tensor const now = at::cat(flat(each.buffers));
      at::Tensor const bad = at::isfinite(now).all().logical_not_().logical_and_(
          skipped.to(now.device(), /*non_blocking=*/true));
      // The module may have moved since.
      at::Tensor const kept = each.kept.to(now.device());
      at::_foreach_copy_(each.buffers, parts(at::where(bad, kept, now), each.buffers));
    }
  }
  /// Whether one is not finite. Waits for the device.
  FRUGAL_INLINE bool is_bad() const {
    at::NoGradGuard const no_gradients;
    return first_non_finite(buffers_).has_value();
  }
  /// Puts them back if one of any process was bad.
  FRUGAL_INLINE void put_back(bool bad) {
    if (!bad) return;
    at::NoGradGuard const no_gradients;
    for (Group const& each : groups_) {
      at::_foreach_copy_(each.buffers, parts(each.kept, each.buffers));
    }
  }

 private:
  struct Group {
    std::vector<at::Tensor> buffers;
    at::Tensor kept;  ///< [number of all elements]
  };

  FRUGAL_INLINE void group() {
    std::map<std::pair<at::ScalarType, std::string>, Group> groups;
    for (at::Tensor const& buffer : buffers_) {
      groups[{buffer.scalar_type(), buffer.device().str()}].buffers.push_back(buffer);
    }
    groups_.clear();
    for (auto& [type, group] : groups) {
      std::int64_t elements = 0;
      for (at::Tensor const& buffer : group.buffers) elements += buffer.numel();
      group.kept = at::empty({elements}, group.buffers.front().options().requires_grad(false));
      groups_.push_back(std::move(group));
    }
  }

  FRUGAL_INLINE static std::vector<at::Tensor> flat(std::vector<at::Tensor> const& tensors) {
    std::vector<at::Tensor> all;
    all.reserve(tensors.size());
    for (at::Tensor const& tensor : tensors) all.push_back(tensor.flatten());
    return all;
  }
  FRUGAL_INLINE static std::vector<at::Tensor> parts(at::Tensor const& all,
                                                     std::vector<at::Tensor> const& like) {
    std::vector<at::Tensor> views;
    views.reserve(like.size());
    std::int64_t at = 0;
    for (at::Tensor const& tensor : like) {
      views.push_back(all.narrow(0, at, tensor.numel()).view(tensor.sizes()));
      at += tensor.numel();
    }
    return views;
  }

  std::vector<at::Tensor> buffers_;
  std::vector<Group> groups_;  ///< by type and device; once take() was called
};

}  // namespace frugal::detail
