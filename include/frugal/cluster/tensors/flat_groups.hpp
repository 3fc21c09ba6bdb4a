// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>
#include <c10/core/Device.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <frugal/cluster/tensors/flat_tensors.hpp>

namespace frugal::detail {

/// Which tensors are together in a flat one: those of one dtype on one device, in the order of the list.
inline std::vector<std::vector<std::size_t>> flat_groups(std::vector<at::Tensor> const& like) {
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
inline std::vector<std::vector<std::size_t>> flat_buckets(std::vector<at::Tensor> const& like,
                                                          std::int64_t most,
                                                          std::vector<at::Tensor> const& alone) {
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
inline std::vector<at::Tensor> tensors_at(std::vector<at::Tensor> const& all,
                                          std::vector<std::size_t> const& indices) {
  std::vector<at::Tensor> some;
  for (std::size_t const i : indices) some.push_back(all[i]);
  return some;
}

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
      std::vector<at::Tensor> const& like,
      std::function<void(Group&)> const& made = [](Group&) {}) {
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
