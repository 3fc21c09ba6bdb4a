// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <cstdint>
#include <string>

#include <frugal/cluster/tensor_parallel/collectives.hpp>
#include <frugal/core/state/cut_tensors.hpp>
#include <frugal/core/state/tensor_part.hpp>
#include <frugal/error.hpp>

namespace frugal::detail {

/// SettingsError unless each rank of the group gets the same number.
inline std::int64_t share_of(std::int64_t all, TensorGroup const& group, std::string const& where,
                             char const* what) {
  std::int64_t const ranks = group->size();
  if (all > 0 && all % ranks == 0) return all / ranks;
  throw SettingsError({.what = std::to_string(all) + " " + what + " cannot be cut over " +
                               std::to_string(ranks) + " processes",
                       .where = where,
                       .why = "each holds an equal part",
                       .fix = std::string("Use a multiple of ") + std::to_string(ranks) +
                              ", or another GridShape::tensor."});
}

/// This rank's shard of a parameter, and where it is in the whole.
struct ShardOf {
  at::Tensor shard{};
  TensorPart part{};

  /// Cuts a parameter along `dim`. The shard is laid out with this dimension outermost, so that its
  /// elements are one run of the whole's.
  static ShardOf cut(at::Tensor const& whole, std::int64_t dim, TensorGroup const& group) {
    at::NoGradGuard const no_gradients;
    at::Tensor const laid_out = whole.movedim(dim, 0).contiguous();
    std::int64_t const rows = laid_out.size(0) / group->size();
    at::Tensor const own = laid_out.narrow(0, group->rank() * rows, rows).clone();
    return {
        .shard = own.movedim(0, dim),
        .part = TensorPart::of(laid_out.movedim(0, dim), group->rank() * own.numel(), own.numel())};
  }
};

/// What a module registers, as `register_parameter(name, ShardOf::cut(...).shard)` alone would not
/// say that it is a shard.
template <class Module>
at::Tensor register_shard(Module& module, std::string const& name, at::Tensor const& whole,
                          std::int64_t dim, TensorGroup const& group) {
  if (group->size() == 1) return module.register_parameter(name, whole);
  ShardOf const own = ShardOf::cut(whole, dim, group);
  at::Tensor& registered = module.register_parameter(name, own.shard);
  cut_tensor(registered, own.part);
  return registered;
}

}  // namespace frugal::detail
