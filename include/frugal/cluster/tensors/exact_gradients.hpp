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
#include <frugal/cluster/tensors/exact_sum.hpp>
#include <frugal/cluster/tensors/flat_tensors.hpp>
#include <frugal/cluster/tensors/pairwise_sum.hpp>

namespace frugal::detail {

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
  void take(double unit, char const* where) {
    at::NoGradGuard const no_gradients;
    std::vector<at::Tensor> gradients;
    bool any = false;
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
      at::Tensor& gradient = parameters_[i].mutable_grad();
      if (gradient.defined()) require_dense(gradient, where);
      any = any || gradient.defined();
      has_[i] = has_[i] || gradient.defined();
      at::Tensor one = gradient.defined() ? std::exchange(gradient, at::Tensor())
                                          : at::zeros_like(parameters_[i]);
      gradients.push_back(unit == 1 ? std::move(one) : one * unit);
    }
    if (any) {
      tree_.add(std::move(gradients));
    } else {
      tree_.add_nothing();
    }
  }

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
