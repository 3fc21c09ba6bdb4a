// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include <frugal/error.hpp>

namespace frugal {

namespace detail {

/// ModuleError for a gradient that cannot be added up over processes.
inline void require_dense(at::Tensor const& gradient) {
  bool const is_sparse = gradient.layout() != at::kStrided;
  if (!is_sparse && !gradient.is_complex()) [[likely]]
    return;
  throw ModuleError(
      {.what = is_sparse ? "a parameter has a sparse gradient" : "a parameter is complex",
       .where = "Replicate",
       .why = "gradients travel as dense tensors of real numbers",
       .fix = is_sparse ? "Make the Embedding without sparse(true)."
                        : "Register its real and its imaginary part as two parameters."});
}

}  // namespace detail

/// Tensors of one dtype and device as one, of a length that every world size divides.
class FlatTensors {
 public:
  /// Views of `like`'s shapes and strides, over zeros. `parts` divides the length.
  FlatTensors(std::vector<at::Tensor> const& like, std::int64_t parts) {
    // Each view begins at a multiple of 64 bytes or more, where kernels expect it.
    constexpr std::int64_t grid = 64;
    std::vector<std::int64_t> begins;
    std::int64_t length = 0;
    for (at::Tensor const& each : like) {
      begins.push_back(length);
      length += (each.numel() + grid - 1) / grid * grid;
    }
    std::int64_t const block = grid * parts;
    length = (length + block - 1) / block * block;
    flat_ = at::zeros({length}, like.front().options().requires_grad(false));
    for (std::size_t i = 0; i < like.size(); ++i) {
      at::Tensor const& each = like[i];
      views_.push_back(each.is_non_overlapping_and_dense()
                           ? flat_.as_strided(each.sizes(), each.strides(), begins[i])
                           : flat_.narrow(0, begins[i], each.numel()).view(each.sizes()));
    }
  }

  at::Tensor& flat() { return flat_; }
  std::vector<at::Tensor> const& views() const { return views_; }

  void copy_from(std::vector<at::Tensor> const& tensors) {
    at::NoGradGuard const no_gradients;
    at::_foreach_copy_(views_, tensors);
  }

 private:
  at::Tensor flat_;
  std::vector<at::Tensor> views_;
};

}  // namespace frugal
