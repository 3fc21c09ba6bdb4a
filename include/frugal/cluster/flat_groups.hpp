// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>
#include <c10/core/Device.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <frugal/cluster/flat_tensors.hpp>

namespace frugal::detail {

/// Tensors of any dtypes and devices as a few flat ones, each laid out as FlatTensors says.
class FlatGroups {
 public:
  /// The tensors of one dtype on one device.
  struct Group {
    std::vector<std::size_t> indices;  ///< of the tensors
    FlatTensors flat;
  };

  explicit FlatGroups(std::int64_t parts, std::int64_t block = FlatTensors::grid)
      : parts_(parts), block_(block) {}

  /// Lays them out, unless they are laid out already.
  void fit(std::vector<at::Tensor> const& like) {
    if (fits(like)) return;
    like_ = like;
    devices_.clear();
    groups_.clear();
    std::map<std::pair<int, std::string>, std::vector<std::size_t>> members;
    for (std::size_t i = 0; i < like.size(); ++i) {
      devices_.push_back(like[i].device());
      members[{static_cast<int>(like[i].scalar_type()), like[i].device().str()}].push_back(i);
    }
    for (auto const& [which, indices] : members) {
      std::vector<at::Tensor> own;
      for (std::size_t const i : indices) own.push_back(like[i]);
      groups_.push_back({indices, FlatTensors(own, parts_, block_)});
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
  std::vector<at::Tensor> like_;
  std::vector<c10::Device> devices_;  ///< a move of the module keeps its tensors
  std::vector<Group> groups_;
};

}  // namespace frugal::detail
