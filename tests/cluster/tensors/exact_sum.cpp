// SPDX-License-Identifier: Apache-2.0
// needs: cluster
// left to clang: shard.cpp has the same templates
#include <doctest/doctest.h>

#include <frugal/cluster/tensors/exact_sum.hpp>

#include <cstdint>
#include <vector>

namespace frugal_test::cluster_exact_sum {

using frugal::PairwiseSum;

// Of very different sizes, so that the order of a sum decides its digits.
std::vector<at::Tensor> leaves(std::int64_t count) {
  torch::manual_seed(7);
  std::vector<at::Tensor> all;
  for (std::int64_t i = 0; i < count; ++i) {
    all.push_back(at::randn({64}) * at::pow(10.0, at::randn({64}) * 3));
  }
  return all;
}

// The tree by its definition: the sum of [begin, end) is that of its two halves at a power of two.
at::Tensor by_halves(std::vector<at::Tensor> const& all, std::size_t begin, std::size_t end,
                     std::vector<bool> const& present) {
  if (end - begin == 1) return present[begin] ? all[begin].clone() : at::Tensor();
  std::size_t half = 1;
  while (half * 2 < end - begin) half *= 2;
  at::Tensor const left = by_halves(all, begin, begin + half, present);
  at::Tensor const right = by_halves(all, begin + half, end, present);
  if (!left.defined()) return right;
  return right.defined() ? left + right : left;
}

at::Tensor sum(std::vector<at::Tensor> const& all, std::vector<bool> const& present) {
  PairwiseSum tree;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (present[i]) {
      tree.add({all[i].clone()});
    } else {
      tree.add_nothing();
    }
  }
  std::vector<at::Tensor> const result = tree.take();
  return result.empty() ? at::Tensor() : result.front();
}

TEST_CASE("sums are those of the tree, for every number of leaves and any that are absent") {
  for (std::int64_t count : {1, 2, 3, 5, 7, 8, 11, 16, 21}) {
    CAPTURE(count);
    std::vector<at::Tensor> const all = leaves(count);
    auto const size = static_cast<std::size_t>(count);
    for (unsigned pattern : {0U, 1U, 5U, 0x2aaU, 0x1f0U}) {
      std::vector<bool> present;
      for (std::size_t i = 0; i < size; ++i) present.push_back((pattern >> (i % 10) & 1U) == 0);
      at::Tensor const expected = by_halves(all, 0, size, present);
      at::Tensor const got = sum(all, present);
      REQUIRE(got.defined() == expected.defined());
      if (expected.defined()) CHECK(got.equal(expected));
    }
  }
}

TEST_CASE("blocks of a power of two are nodes of the tree, so that processes can sum them") {
  std::vector<at::Tensor> const all = leaves(12);
  std::vector<bool> const present(12, true);
  at::Tensor const expected = sum(all, present);
  CHECK_FALSE(expected.equal(at::stack(all).sum(0)));  // the order matters in this test
  for (std::size_t block : {1U, 2U, 4U}) {
    PairwiseSum whole;
    for (std::size_t begin = 0; begin < all.size(); begin += block) {
      PairwiseSum part;
      for (std::size_t i = begin; i < begin + block; ++i) part.add({all[i].clone()});
      whole.add(part.take());
    }
    CHECK(whole.take().front().equal(expected));
  }
}

TEST_CASE("nothing at all, and a second sum") {
  PairwiseSum tree;
  CHECK(tree.take().empty());
  tree.add_nothing();
  CHECK(tree.take().empty());
  tree.add({at::ones({2}), at::zeros({1})});
  tree.add({at::ones({2}), at::ones({1})});
  std::vector<at::Tensor> const sums = tree.take();
  REQUIRE(sums.size() == 2);
  CHECK(sums[0].equal(at::full({2}, 2.0)));
  CHECK(sums[1].equal(at::ones({1})));
}

}  // namespace frugal_test::cluster_exact_sum
