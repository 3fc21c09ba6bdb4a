// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <c10/core/Device.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace frugal::detail {

/// ModuleError for two tensors over the same memory, which would be two parameters if each gets memory
/// of its own. `why`: what would become of them.
void require_memory_of_their_own(std::vector<at::Tensor> const& parameters, std::string where,
                                 std::string why);

}  // namespace frugal::detail

namespace frugal {

namespace detail {

/// ModuleError for a gradient that cannot be added up over processes.
void require_dense(at::Tensor const& gradient, char const* where = "Replicate");

}  // namespace detail

/// Where tensors lie in a flat one whose length every world size divides.
class FlatLayout {
 public:
  /// Each begins at a multiple of so many elements, where kernels expect it.
  static constexpr std::int64_t grid = 64;

  /// The length is cut into `parts` of equal length, at multiples of `block` elements, a multiple of
  /// the grid: each cut is at a multiple of `block` of a tensor's own elements, or between two tensors.
  FlatLayout(std::vector<at::Tensor> const& like, std::int64_t parts, std::int64_t block = grid);

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
              std::int64_t block = FlatLayout::grid);

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

namespace frugal::detail {

/// Tensors of any dtypes and devices as a few flat ones, each laid out as FlatLayout says.
class FlatGroups {
 public:
  struct Group {
    std::vector<std::size_t> indices;  ///< of the tensors
    FlatTensors flat;
  };

  /// `bucket`: bytes of a group at most (flat_buckets); 0: one for each dtype and device.
  explicit FlatGroups(std::int64_t parts, std::int64_t block = FlatLayout::grid,
                      std::int64_t bucket = 0, std::vector<at::Tensor> alone = {})
      : parts_(parts), block_(block), bucket_(bucket), alone_(std::move(alone)) {}

  /// Lays them out, unless they are laid out already. `made` gets each group before the memory of the
  /// next one is allocated.
  void fit(
      std::vector<at::Tensor> const& like, std::function<void(Group&)> const& made = [](Group&) {});
  std::vector<Group>& groups() { return groups_; }

 private:
  bool fits(std::vector<at::Tensor> const& like) const {
    if (like.size() != like_.size()) return false;
    for (std::size_t i = 0; i < like.size(); ++i) {
      if (!like[i].is_same(like_[i]) || like[i].device() != devices_[i]) return false;
    }
    return true;
  }

  std::int64_t parts_;
  std::int64_t block_;
  std::int64_t bucket_;
  std::vector<at::Tensor> alone_;
  std::vector<at::Tensor> like_;
  std::vector<c10::Device> devices_;  ///< a move of the module keeps its tensors
  std::vector<Group> groups_;
};

}  // namespace frugal::detail

#ifndef FRUGAL_COMPILED
#include <frugal/cluster/tensors/flat_tensors.ipp>
#endif
