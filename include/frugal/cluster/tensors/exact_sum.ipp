// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/cluster/tensors/exact_sum.hpp>

#include <frugal/inline.hpp>

namespace frugal {

FRUGAL_INLINE PairwiseSum::Tensors PairwiseSum::take() {
  Tensors sum;
  // From the last node on: on its right the tree has nothing.
  for (auto node = nodes_.rbegin(); node != nodes_.rend(); ++node) {
    sum = sum_of(std::move(node->tensors), std::move(sum));
  }
  nodes_.clear();
  return sum;
}

FRUGAL_INLINE void PairwiseSum::carry(Node node) {
  while (!nodes_.empty() && nodes_.back().level == node.level) {
    node = {.level = node.level + 1,
            .tensors = sum_of(std::move(nodes_.back().tensors), std::move(node.tensors))};
    nodes_.pop_back();
  }
  nodes_.push_back(std::move(node));
}

}  // namespace frugal

namespace frugal::detail {

FRUGAL_INLINE void ExactSum::start(std::vector<at::Tensor> const& like,
                                   std::vector<at::Tensor> const& mine) {
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

FRUGAL_INLINE std::vector<at::Tensor> ExactSum::sum(std::vector<bool> const& counts) {
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

FRUGAL_INLINE std::vector<at::Tensor> ExactSum::own_sum(std::vector<bool> const& counts) {
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

FRUGAL_INLINE at::Tensor ExactSum::sum_of_part(FlatGroups::Group const& group, Pending& pending,
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

FRUGAL_INLINE void ExactGradients::take(double unit, char const* where) {
  at::NoGradGuard const no_gradients;
  std::vector<at::Tensor> gradients;
  bool any = false;
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    at::Tensor& gradient = parameters_[i].mutable_grad();
    if (gradient.defined()) require_dense(gradient, where);
    any = any || gradient.defined();
    has_[i] = has_[i] || gradient.defined();
    at::Tensor one =
        gradient.defined() ? std::exchange(gradient, at::Tensor()) : at::zeros_like(parameters_[i]);
    gradients.push_back(unit == 1 ? std::move(one) : one * unit);
  }
  if (any) {
    tree_.add(std::move(gradients));
  } else {
    tree_.add_nothing();
  }
}

}  // namespace frugal::detail
