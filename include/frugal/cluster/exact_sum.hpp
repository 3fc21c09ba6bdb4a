// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include <frugal/cluster/communicator.hpp>
#include <frugal/cluster/flat_groups.hpp>
#include <frugal/cluster/pairwise_sum.hpp>

namespace frugal::detail {

/// Adds up lists of tensors over ranks in the tree of PairwiseSum, whose leaves are the ranks: each
/// rank sums one part of all lists, and all collect the parts. Sends 2 (W - 1) / W of the bytes, as
/// a ring does.
class ExactSum {
 public:
  /// `block`: where parts may be cut (FlatTensors).
  explicit ExactSum(Communicator& all, std::int64_t block = FlatTensors::grid)
      : all_(all), flats_(all.size(), block) {}

  /// `mine` is empty in a rank that has nothing to add; `counts` says of each rank whether it has
  /// something. The result is the next call's memory.
  std::vector<at::Tensor> sum(std::vector<at::Tensor> const& like,
                              std::vector<at::Tensor> const& mine,
                              std::vector<bool> const& counts) {
    std::vector<at::Tensor> sums(like.size());
    flats_.fit(like);
    for (FlatGroups::Group& group : flats_.groups()) {
      at::Tensor part = sum_of_part(group, mine, counts);
      all_.collect(group.flat.flat(), part, "the collection of gradients");
      for (std::size_t k = 0; k < group.indices.size(); ++k) {
        sums[group.indices[k]] = group.flat.views()[k];
      }
    }
    return sums;
  }

  /// Likewise, of this rank's part alone: of each tensor the elements that are in it.
  std::vector<at::Tensor> own_sum(std::vector<at::Tensor> const& like,
                                  std::vector<at::Tensor> const& mine,
                                  std::vector<bool> const& counts) {
    std::vector<at::Tensor> sums(like.size());
    flats_.fit(like);
    for (FlatGroups::Group& group : flats_.groups()) {
      at::Tensor const part = sum_of_part(group, mine, counts);
      for (std::size_t k = 0; k < group.indices.size(); ++k) {
        sums[group.indices[k]] = group.flat.slice(k, all_.rank(), part);
      }
    }
    return sums;
  }

 private:
  at::Tensor sum_of_part(FlatGroups::Group& group, std::vector<at::Tensor> const& mine,
                         std::vector<bool> const& counts) {
    at::NoGradGuard const no_gradients;
    if (!mine.empty()) {
      std::vector<at::Tensor> own;
      for (std::size_t const i : group.indices) own.push_back(mine[i]);
      group.flat.copy_from(own);
    }
    std::int64_t const length = group.flat.part_length();
    at::Tensor parts = at::empty_like(group.flat.flat());
    all_.exchange(parts, group.flat.flat(), "the exchange of gradients");
    PairwiseSum tree;
    for (std::size_t rank = 0; rank < counts.size(); ++rank) {
      if (counts[rank]) {
        tree.add({parts.narrow(0, static_cast<std::int64_t>(rank) * length, length)});
      } else {
        tree.add_nothing();
      }
    }
    return tree.take().front();
  }

  Communicator& all_;
  FlatGroups flats_;
};

}  // namespace frugal::detail
