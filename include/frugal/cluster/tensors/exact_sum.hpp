// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include <frugal/cluster/communicator.hpp>
#include <frugal/cluster/tensors/flat_tensors.hpp>

namespace frugal {

/// Adds up lists of tensors in a fixed tree: ((0 + 1) + (2 + 3)) + ((4 + 5) + ...). So the sum of an
/// aligned block of 2^k lists is one of the tree's nodes, whoever has computed it, and the bits of
/// the whole do not depend on how many processes share the work.
///
/// A list that is absent (add_nothing) has its place in the tree, and adds nothing.
///
/// Memory  log2(lists) + 1 lists at most. Sums are made in place, in the left one.
class PairwiseSum {
 public:
  using Tensors = std::vector<at::Tensor>;

  /// Takes the tensors: they are written to.
  void add(Tensors tensors) { carry({.level = 0, .tensors = std::move(tensors)}); }
  void add_nothing() { carry({}); }

  /// The sum of all lists; empty if all were absent. Begins again.
  Tensors take();

 private:
  struct Node {
    int level = 0;  // of a sum of 2^level lists
    Tensors tensors{};
  };

  void carry(Node node);

  static Tensors sum_of(Tensors left, Tensors right) {
    if (left.empty()) return right;
    if (right.empty()) return left;
    at::NoGradGuard const no_gradients;
    at::_foreach_add_(left, right);
    return left;
  }

  std::vector<Node> nodes_;
};

}  // namespace frugal

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
  void start(std::vector<at::Tensor> const& like, std::vector<at::Tensor> const& mine);

  /// The sums of what was exchanged. `counts` says of each rank whether it had something. The result
  /// is the next call's memory.
  std::vector<at::Tensor> sum(std::vector<bool> const& counts);

  /// Likewise, of this rank's part alone: of each tensor the elements that are in it.
  std::vector<at::Tensor> own_sum(std::vector<bool> const& counts);

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
                         std::vector<bool> const& counts);

  Communicator& all_;
  FlatGroups flats_;
  std::size_t count_ = 0;  ///< tensors of a list
  std::vector<Pending> pending_;
};

class ShardedParameters;

/// A window's gradients, added up in one tree over the micro-batches of all processes.
class ExactGradients {
 public:
  /// Each process may have shards of the weights (Grid): sums are taken of each element by itself.
  static constexpr bool knows_shards = true;

  /// `block`: where the parts of processes may be cut (FlatLayout).
  explicit ExactGradients(Communicator& all, std::int64_t block = FlatLayout::grid)
      : all_(all), sum_(all, block) {}

  /// Of a window, for these parameters.
  void begin(std::vector<at::Tensor> const& parameters, ShardedParameters const* = nullptr) {
    parameters_ = parameters;
    tree_.take();  // of a window that has failed
    has_.assign(parameters_.size(), false);
  }
  /// The passes of a micro-batch of this process begin.
  void before(bool, double const&) {}
  /// They have ended.
  void after() { take(1, "Replicate"); }
  /// Takes the gradients of a micro-batch, which are still to be multiplied by `unit`. One without any is a
  /// mean over nothing: it has its place in the tree.
  void take(double unit, char const* where);

  /// Begins to exchange the sums of this process.
  void begin_rest() {
    own_ = tree_.take();
    if (all_.size() > 1) sum_.start(parameters_, own_);
  }
  /// A message to all processes, while gradients travel: [processes, n].
  at::Tensor exchange(at::Tensor const& message) {
    return all_.gather(message, "the losses of a step", /*after_tensors=*/true);
  }

  /// The sums of this process, between begin_rest() and sum(); empty if it has none.
  std::vector<at::Tensor> const& own() const { return own_; }
  /// Which parameters have got a gradient here.
  std::vector<bool> const& has() const { return has_; }

  /// The sums, in the order of the parameters. `counts` says of each process whether it has a
  /// micro-batch that counts.
  std::vector<at::Tensor> sum(std::vector<bool> const& counts) {
    if (all_.size() == 1) return std::exchange(own_, {});
    own_.clear();
    if (has_any(counts)) return sum_.sum(counts);
    sum_.discard();
    return {};
  }
  /// Likewise this process's parts of the sums.
  std::vector<at::Tensor> own_sum(std::vector<bool> const& counts, ShardedParameters&) {
    own_.clear();
    if (has_any(counts)) return sum_.own_sum(counts);
    sum_.discard();
    return {};
  }

 private:
  static bool has_any(std::vector<bool> const& counts) {
    return std::ranges::find(counts, true) != counts.end();
  }

  Communicator& all_;
  ExactSum sum_;
  PairwiseSum tree_;
  std::vector<at::Tensor> own_;  ///< sums of this process
  std::vector<at::Tensor> parameters_;
  std::vector<bool> has_;
};

}  // namespace frugal::detail

#ifndef FRUGAL_COMPILED
#include <frugal/cluster/tensors/exact_sum.ipp>
#endif
