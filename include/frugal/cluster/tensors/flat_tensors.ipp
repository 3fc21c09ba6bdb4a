// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/cluster/tensors/flat_tensors.hpp>

#include <frugal/error.hpp>
#include <frugal/inline.hpp>

#include <map>
#include <set>

namespace frugal::detail {

FRUGAL_INLINE void require_memory_of_their_own(std::vector<at::Tensor> const& parameters,
                                               std::string where, std::string why) {
  std::set<void const*> seen;
  for (at::Tensor const& each : parameters) {
    if (each.numel() == 0 || seen.insert(each.const_data_ptr()).second) continue;
    throw ModuleError(
        {.what = "two parameters share their memory, and are two tensors",
         .where = std::move(where),
         .why = std::move(why),
         .fix = "Register one tensor under both names: tied weights are trained once."});
  }
}

FRUGAL_INLINE void require_dense(at::Tensor const& gradient, char const* where) {
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

}  // namespace frugal::detail

namespace frugal {

FRUGAL_INLINE FlatLayout::FlatLayout(std::vector<at::Tensor> const& like, std::int64_t parts,
                                     std::int64_t block)
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

FRUGAL_INLINE FlatTensors::FlatTensors(std::vector<at::Tensor> const& like, std::int64_t parts,
                                       std::int64_t block)
    : layout_(like, parts, block) {
  flat_ = at::zeros({layout_.length()}, like.front().options().requires_grad(false));
  for (std::size_t i = 0; i < like.size(); ++i) {
    views_.push_back(layout_.view(i, flat_, like[i]));
  }
}

}  // namespace frugal

namespace frugal::detail {

/// Which tensors are together in a flat one: those of one dtype on one device, in the order of the list.
FRUGAL_INLINE std::vector<std::vector<std::size_t>> flat_groups(
    std::vector<at::Tensor> const& like) {
  std::map<std::pair<int, std::string>, std::vector<std::size_t>> members;
  for (std::size_t i = 0; i < like.size(); ++i) {
    members[{static_cast<int>(like[i].scalar_type()), like[i].device().str()}].push_back(i);
  }
  std::vector<std::vector<std::size_t>> groups;
  for (auto& [which, indices] : members) groups.push_back(std::move(indices));
  return groups;
}

/// Likewise in buckets of at most so many bytes, or of one larger tensor: from the last tensor on, which
/// is about the order in which parameters get their gradients. Those `alone` have a bucket each.
FRUGAL_INLINE std::vector<std::vector<std::size_t>> flat_buckets(
    std::vector<at::Tensor> const& like, std::int64_t most, std::vector<at::Tensor> const& alone) {
  auto const is_alone = [&](std::size_t i) {
    return std::ranges::any_of(alone,
                               [&](at::Tensor const& each) { return each.is_same(like[i]); });
  };
  std::vector<std::vector<std::size_t>> buckets;
  std::int64_t bytes = 0;
  for (std::size_t i = like.size(); i-- > 0;) {
    auto const size = static_cast<std::int64_t>(like[i].nbytes());
    bool const fits = !buckets.empty() && bytes + size <= most && !is_alone(i) &&
                      !is_alone(buckets.back().front()) &&
                      like[buckets.back().front()].scalar_type() == like[i].scalar_type() &&
                      like[buckets.back().front()].device() == like[i].device();
    if (!fits) {
      buckets.emplace_back();
      bytes = 0;
    }
    buckets.back().push_back(i);
    bytes += size;
  }
  return buckets;
}

/// Those of a list that these indices name.
FRUGAL_INLINE std::vector<at::Tensor> tensors_at(std::vector<at::Tensor> const& all,
                                                 std::vector<std::size_t> const& indices) {
  std::vector<at::Tensor> some;
  for (std::size_t const i : indices) some.push_back(all[i]);
  return some;
}

FRUGAL_INLINE void FlatGroups::fit(std::vector<at::Tensor> const& like,
                                   std::function<void(Group&)> const& made) {
  if (fits(like)) return;
  like_ = like;
  devices_.clear();
  groups_.clear();
  for (at::Tensor const& each : like) devices_.push_back(each.device());
  auto groups = bucket_ == 0 ? flat_groups(like) : flat_buckets(like, bucket_, alone_);
  groups_.reserve(groups.size());
  for (auto& indices : groups) {
    FlatTensors flat(tensors_at(like, indices), parts_, block_);
    made(groups_.emplace_back(std::move(indices), std::move(flat)));
  }
}

}  // namespace frugal::detail
