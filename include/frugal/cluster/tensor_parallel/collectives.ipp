// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/cluster/tensor_parallel/collectives.hpp>

#include <frugal/error.hpp>
#include <frugal/inline.hpp>

#include <ATen/core/grad_mode.h>

#include <vector>

namespace frugal::detail {

/// The sum over rows [W, n] in the tree of PairwiseSum. 16-bit types are added up in float, and rounded
/// once. Writes to the rows.
FRUGAL_INLINE at::Tensor sum_of_rows(at::Tensor const& rows) {
  bool const is_half = rows.scalar_type() == at::kHalf || rows.scalar_type() == at::kBFloat16;
  PairwiseSum tree;
  for (at::Tensor const& row : rows.unbind(0)) tree.add({is_half ? row.to(at::kFloat) : row});
  return tree.take().front().to(rows.scalar_type());
}

FRUGAL_INLINE at::Tensor sum_over(Communicator& group, at::Tensor const& mine) {
  if (group.size() == 1 || mine.is_meta() || mine.numel() == 0) return mine.clone();
  constexpr std::int64_t small = 16384;  // elements of all ranks
  at::NoGradGuard const no_gradients;
  std::int64_t const ranks = group.size(), count = mine.numel();
  at::Tensor flat = mine.contiguous().view(-1);
  if (ranks * count <= small) {
    at::Tensor all = at::empty({ranks * count}, flat.options());
    group.collect(all, flat, sum_of_activations);
    return sum_of_rows(all.view({ranks, count})).view(mine.sizes());
  }
  std::int64_t const length = (count + ranks - 1) / ranks;
  if (length * ranks != count) flat = at::constant_pad_nd(flat, {0, length * ranks - count});
  at::Tensor parts = at::empty_like(flat);
  group.exchange(parts, flat, sum_of_activations);
  at::Tensor own = sum_of_rows(parts.view({ranks, length}));
  at::Tensor all = at::empty_like(flat);
  group.collect(all, own, sum_of_activations);
  return all.narrow(0, 0, count).view(mine.sizes());
}

FRUGAL_INLINE at::Tensor gather_over(Communicator& group, at::Tensor const& mine,
                                     std::int64_t dim) {
  if (group.size() == 1) return mine.clone();
  at::NoGradGuard const no_gradients;
  std::int64_t const ranks = group.size();
  if (mine.is_meta())
    return at::cat(std::vector<at::Tensor>(static_cast<std::size_t>(ranks), mine), dim);
  at::Tensor flat = mine.contiguous().view(-1);
  at::Tensor all = at::empty({ranks * flat.numel()}, flat.options());
  group.collect(all, flat, "a gathering of activations");
  std::vector<std::int64_t> shape = mine.sizes().vec();
  shape.insert(shape.begin(), ranks);
  return at::cat(all.view(shape).unbind(0), dim);
}

FRUGAL_INLINE at::Tensor part_over(Communicator& group, at::Tensor const& whole, std::int64_t dim) {
  std::int64_t const size = whole.size(dim), ranks = group.size();
  if (size % ranks != 0) {
    throw ModuleError({.what = "a dimension of " + std::to_string(size) + " cannot be cut over " +
                               std::to_string(ranks) + " processes",
                       .where = "scatter_to_group, dimension " + std::to_string(dim),
                       .why = "each takes an equal part",
                       .fix = "Use a size that is a multiple of the group's, or a smaller group."});
  }
  return whole.narrow(dim, group.rank() * (size / ranks), size / ranks);
}

FRUGAL_INLINE std::int64_t share_of(std::int64_t all, TensorGroup const& group,
                                    std::string const& where, char const* what) {
  std::int64_t const ranks = group->size();
  if (all > 0 && all % ranks == 0) return all / ranks;
  throw SettingsError({.what = std::to_string(all) + " " + what + " cannot be cut over " +
                               std::to_string(ranks) + " processes",
                       .where = where,
                       .why = "each holds an equal part",
                       .fix = std::string("Use a multiple of ") + std::to_string(ranks) +
                              ", or another GridShape::tensor."});
}

FRUGAL_INLINE ShardOf ShardOf::cut(at::Tensor const& whole, std::int64_t dim,
                                   TensorGroup const& group) {
  at::NoGradGuard const no_gradients;
  at::Tensor const laid_out = whole.movedim(dim, 0).contiguous();
  std::int64_t const rows = laid_out.size(0) / group->size();
  at::Tensor const own = laid_out.narrow(0, group->rank() * rows, rows).clone();
  return {
      .shard = own.movedim(0, dim),
      .part = TensorPart::of(laid_out.movedim(0, dim), group->rank() * own.numel(), own.numel())};
}

}  // namespace frugal::detail
