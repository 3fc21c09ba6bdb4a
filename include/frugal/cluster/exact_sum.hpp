// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <c10/core/Device.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <frugal/cluster/communicator.hpp>
#include <frugal/cluster/flat_tensors.hpp>
#include <frugal/cluster/pairwise_sum.hpp>

namespace frugal::detail {

/// Adds up lists of tensors over ranks in the tree of PairwiseSum, whose leaves are the ranks: each
/// rank sums one part of all lists, and all collect the parts. Sends 2 (W - 1) / W of the bytes, as
/// a ring does.
class ExactSum {
 public:
  explicit ExactSum(Communicator& all) : all_(all) {}

  /// `mine` is empty in a rank that has nothing to add; `counts` says of each rank whether it has
  /// something. The result is the next call's memory.
  std::vector<at::Tensor> sum(std::vector<at::Tensor> const& like,
                              std::vector<at::Tensor> const& mine,
                              std::vector<bool> const& counts) {
    if (!fits(like)) make_groups(like);
    std::vector<at::Tensor> sums(like.size());
    for (auto& [which, group] : groups_) {
      if (!mine.empty()) {
        std::vector<at::Tensor> part;
        for (std::size_t const i : group.indices) part.push_back(mine[i]);
        group.flat->copy_from(part);
      }
      add_up(group.flat->flat(), counts);
      for (std::size_t k = 0; k < group.indices.size(); ++k) {
        sums[group.indices[k]] = group.flat->views()[k];
      }
    }
    return sums;
  }

 private:
  /// Tensors that travel as one.
  struct Group {
    std::vector<std::size_t> indices{};
    std::unique_ptr<FlatTensors> flat{};
  };

  bool fits(std::vector<at::Tensor> const& like) const {
    if (like.size() != shapes_.size()) return false;
    for (std::size_t i = 0; i < like.size(); ++i) {
      if (!like[i].is_same(shapes_[i]) || like[i].device() != devices_[i]) return false;
    }
    return true;
  }

  void make_groups(std::vector<at::Tensor> const& like) {
    shapes_ = like;
    devices_.clear();
    for (at::Tensor const& each : like) devices_.push_back(each.device());
    groups_.clear();
    for (std::size_t i = 0; i < like.size(); ++i) {
      groups_[{static_cast<int>(like[i].scalar_type()), like[i].device().str()}].indices.push_back(
          i);
    }
    for (auto& [which, group] : groups_) {
      std::vector<at::Tensor> members;
      for (std::size_t const i : group.indices) members.push_back(like[i]);
      group.flat = std::make_unique<FlatTensors>(members, all_.size());
    }
  }

  void add_up(at::Tensor& flat, std::vector<bool> const& counts) {
    at::NoGradGuard const no_gradients;
    std::int64_t const part = flat.numel() / all_.size();
    at::Tensor parts = at::empty_like(flat);
    all_.exchange(parts, flat, "the exchange of gradients");
    PairwiseSum tree;
    for (std::size_t rank = 0; rank < counts.size(); ++rank) {
      if (counts[rank]) {
        tree.add({parts.narrow(0, static_cast<std::int64_t>(rank) * part, part)});
      } else {
        tree.add_nothing();
      }
    }
    std::vector<at::Tensor> sum = tree.take();
    all_.collect(flat, sum.front(), "the collection of gradients");
  }

  Communicator& all_;
  std::vector<at::Tensor> shapes_;
  std::vector<c10::Device> devices_;  ///< a move of the module keeps its tensors
  std::map<std::pair<int, std::string>, Group> groups_;
};

}  // namespace frugal::detail
