// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <utility>
#include <vector>

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
  Tensors take() {
    Tensors sum;
    // From the last node on: on its right the tree has nothing.
    for (auto node = nodes_.rbegin(); node != nodes_.rend(); ++node) {
      sum = sum_of(std::move(node->tensors), std::move(sum));
    }
    nodes_.clear();
    return sum;
  }

 private:
  struct Node {
    int level = 0;  // of a sum of 2^level lists
    Tensors tensors{};
  };

  void carry(Node node) {
    while (!nodes_.empty() && nodes_.back().level == node.level) {
      node = {.level = node.level + 1,
              .tensors = sum_of(std::move(nodes_.back().tensors), std::move(node.tensors))};
      nodes_.pop_back();
    }
    nodes_.push_back(std::move(node));
  }

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
