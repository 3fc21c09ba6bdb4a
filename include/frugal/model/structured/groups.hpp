// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>
#include <ATen/Version.h>
#include <ATen/core/grad_mode.h>
#include <torch/nn/module.h>

#include <cstdint>
#include <optional>
#include <vector>

#include <frugal/model/structured/cut.hpp>
#include <frugal/model/structured/trace.hpp>
#include <frugal/model/where.hpp>

namespace frugal {

/// How channels are ranked: by the sums of absolute values, or of squares, of all weights that make or
/// take them; or by the scale of their BatchNorms (Liu et al., "Network slimming", 2017).
enum class RankBy { l1, l2, batch_norm_scale };

namespace detail {

struct CutSettings {
  double keep = 0;
  std::int64_t round = 1;  ///< 0: the machine's vector
  RankBy rank = RankBy::l2;
  std::optional<NamePatterns> where{};
};

/// Elements of a type in a vector register of the machine; on an accelerator, in 64 bytes, of which
/// its matrix units take a multiple.
std::int64_t vector_width(at::Tensor const& like);

/// The groups of a traced module, in the order of its parameters.
std::vector<CutGroup> groups_of(torch::nn::Module& module, AxisTrace const& trace);

/// The importance of each position; undefined if the group has nothing to rank by.
at::Tensor importance_of(CutGroup const& group, RankBy rank);

/// How many positions stay: the share, rounded up to what fills a vector.
std::int64_t width_after(CutGroup const& group, CutSettings const& settings);

}  // namespace detail
}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/model/structured/groups.ipp>
#endif
