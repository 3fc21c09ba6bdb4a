// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include <frugal/cluster/communicator.hpp>
#include <frugal/cluster/tensors/flat_groups.hpp>
#include <frugal/cluster/tensors/pairwise_sum.hpp>

namespace frugal::detail {

/// Adds up lists of tensors over ranks in the tree of PairwiseSum, whose leaves are the ranks: each
/// rank sums one part of all lists, and all collect the parts. Sends 2 (W - 1) / W of the bytes, as
/// a ring does.
class ExactSum {
 public:
  /// `block`: where parts may be cut (FlatLayout).
  explicit ExactSum(Communicator& all, std::int64_t block = FlatLayout::grid)
      : all_(all), flats_(all.size(), block) {}

  /// Begins to exchange the lists. `mine` is empty in a rank that has nothing to add.
  void start(std::vector<at::Tensor> const& like, std::vector<at::Tensor> const& mine) {
    at::NoGradGuard const no_gradients;
    flats_.fit(like);
    count_ = like.size();
    pending_.clear();
    for (FlatGroups::Group& group : flats_.groups()) {
      if (!mine.empty()) {
        std::vector<at::Tensor> own;
        for (std::size_t const i : group.indices) own.push_back(mine[i]);
        group.flat.copy_from(own);
      }
      Pending& one = pending_.emplace_back();
      one.parts = at::empty_like(group.flat.flat());
      one.work = all_.start_exchange(one.parts, group.flat.flat(), name);
    }
  }

  /// The sums of what was exchanged. `counts` says of each rank whether it had something. The result
  /// is the next call's memory.
  std::vector<at::Tensor> sum(std::vector<bool> const& counts) {
    std::vector<at::Tensor> sums(count_);
    for (std::size_t g = 0; g < pending_.size(); ++g) {
      FlatGroups::Group& group = flats_.groups()[g];
      at::Tensor part = sum_of_part(group, pending_[g], counts);
      all_.collect(group.flat.flat(), part, "the collection of gradients");
      for (std::size_t k = 0; k < group.indices.size(); ++k) {
        sums[group.indices[k]] = group.flat.views()[k];
      }
    }
    return sums;
  }

  /// Likewise, of this rank's part alone: of each tensor the elements that are in it.
  std::vector<at::Tensor> own_sum(std::vector<bool> const& counts) {
    std::vector<at::Tensor> sums(count_);
    for (std::size_t g = 0; g < pending_.size(); ++g) {
      FlatGroups::Group& group = flats_.groups()[g];
      at::Tensor const part = sum_of_part(group, pending_[g], counts);
      for (std::size_t k = 0; k < group.indices.size(); ++k) {
        sums[group.indices[k]] = group.flat.layout().slice(k, all_.rank(), part);
      }
    }
    return sums;
  }

  /// Waits for what was begun, and forgets it: no rank had anything.
  void discard() {
    for (Pending& one : pending_) {
      if (one.work) all_.complete(one.work, name);
    }
    pending_.clear();
  }

 private:
  static constexpr char const* name = "the exchange of gradients";

  /// An exchange of one group.
  struct Pending {
    at::Tensor parts{};  ///< this rank's, of each rank
    c10::intrusive_ptr<c10d::Work> work{};
  };

  at::Tensor sum_of_part(FlatGroups::Group const& group, Pending& pending,
                         std::vector<bool> const& counts) {
    at::NoGradGuard const no_gradients;
    if (pending.work) all_.complete(pending.work, name);
    pending.work.reset();
    std::int64_t const length = group.flat.layout().part_length();
    PairwiseSum tree;
    for (std::size_t rank = 0; rank < counts.size(); ++rank) {
      if (counts[rank]) {
        tree.add({pending.parts.narrow(0, static_cast<std::int64_t>(rank) * length, length)});
      } else {
        tree.add_nothing();
      }
    }
    pending.parts.reset();
    return tree.take().front();
  }

  Communicator& all_;
  FlatGroups flats_;
  std::size_t count_ = 0;  ///< tensors of a list
  std::vector<Pending> pending_;
};

}  // namespace frugal::detail
