// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <frugal/error.hpp>

namespace frugal {

namespace detail {

/// ModuleError for a gradient that cannot be added up over processes.
inline void require_dense(at::Tensor const& gradient, char const* where = "Replicate") {
  bool const is_sparse = gradient.layout() != at::kStrided;
  if (!is_sparse && !gradient.is_complex()) [[likely]]
    return;
  throw ModuleError(
      {.what = is_sparse ? "a parameter has a sparse gradient" : "a parameter is complex",
       .where = where,
       .why = "gradients travel as dense tensors of real numbers",
       .fix = is_sparse ? "Make the Embedding without sparse(true)."
                        : "Register its real and its imaginary part as two parameters."});
}

}  // namespace detail

/// Where tensors lie in a flat one whose length every world size divides.
class FlatLayout {
 public:
  /// Each begins at a multiple of so many elements, where kernels expect it.
  static constexpr std::int64_t grid = 64;

  /// The length is cut into `parts` of equal length, at multiples of `block` elements, a multiple of
  /// the grid: each cut is at a multiple of `block` of a tensor's own elements, or between two tensors.
  FlatLayout(std::vector<at::Tensor> const& like, std::int64_t parts, std::int64_t block = grid)
      : parts_(parts) {
    auto const round_up = [](std::int64_t at, std::int64_t to) { return (at + to - 1) / to * to; };
    for (at::Tensor const& each : like) {
      std::int64_t const size = round_up(each.numel(), grid);
      if (length_ % block + size > block) length_ = round_up(length_, block);
      begins_.push_back(length_);
      counts_.push_back(each.numel());
      length_ += size;
    }
    length_ = round_up(length_, block * parts);
  }

  std::int64_t length() const { return length_; }
  std::int64_t part_length() const { return length_ / parts_; }
  /// Elements of a tensor, in the order of its memory.
  struct Range {
    std::int64_t first = 0;
    std::int64_t count = 0;
  };
  /// Those of tensor `i` that are in this part.
  Range range(std::size_t i, std::int64_t which) const {
    std::int64_t const begin =
        std::clamp(which * part_length() - begins_[i], std::int64_t{0}, counts_[i]);
    std::int64_t const end =
        std::clamp((which + 1) * part_length() - begins_[i], std::int64_t{0}, counts_[i]);
    return {.first = begin, .count = end - begin};
  }
  /// The elements of tensor `i` that are in part `which`, of a tensor that is laid out as this part.
  at::Tensor slice(std::size_t i, std::int64_t which, at::Tensor const& of_part) const {
    Range const own = range(i, which);
    std::int64_t const at = own.count == 0 ? 0 : begins_[i] + own.first - which * part_length();
    return of_part.narrow(0, at, own.count);
  }
  /// Tensor `i` in a flat one, with the shape and strides of `like`.
  at::Tensor view(std::size_t i, at::Tensor const& flat, at::Tensor const& like) const {
    return like.is_non_overlapping_and_dense()
               ? flat.as_strided(like.sizes(), like.strides(), begins_[i])
               : flat.narrow(0, begins_[i], like.numel()).view(like.sizes());
  }

 private:
  std::int64_t parts_;
  std::int64_t length_ = 0;
  std::vector<std::int64_t> begins_;
  std::vector<std::int64_t> counts_;
};

/// Tensors of one dtype and device as one, laid out as FlatLayout says.
class FlatTensors {
 public:
  /// Views of `like`'s shapes and strides, over zeros.
  FlatTensors(std::vector<at::Tensor> const& like, std::int64_t parts,
              std::int64_t block = FlatLayout::grid)
      : layout_(like, parts, block) {
    flat_ = at::zeros({layout_.length()}, like.front().options().requires_grad(false));
    for (std::size_t i = 0; i < like.size(); ++i) {
      views_.push_back(layout_.view(i, flat_, like[i]));
    }
  }

  FlatLayout const& layout() const { return layout_; }
  at::Tensor& flat() { return flat_; }
  std::vector<at::Tensor> const& views() const { return views_; }

  /// This part of the whole.
  at::Tensor part(std::int64_t which) const {
    return flat_.narrow(0, which * layout_.part_length(), layout_.part_length());
  }

  void copy_from(std::vector<at::Tensor> const& tensors) {
    at::NoGradGuard const no_gradients;
    at::_foreach_copy_(views_, tensors);
  }

 private:
  FlatLayout layout_;
  at::Tensor flat_;
  std::vector<at::Tensor> views_;
};

}  // namespace frugal
