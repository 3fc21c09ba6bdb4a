// SPDX-License-Identifier: Apache-2.0
// needs: cluster
// left to clang: power_sgd.cpp has the same templates
#include <doctest/doctest.h>

#include <frugal/cluster/power_sgd/state.hpp>

#include <ATen/ATen.h>

#include <cstddef>
#include <cstdint>
#include <tuple>
#include <vector>

namespace frugal_test::cluster_low_rank {

namespace fr = frugal;
using fr::detail::FactorSeeds;
using fr::detail::LowRank;
using fr::detail::orthogonalize;

TEST_CASE("the seeds are those of numpy.random.RandomState(seed).randint(10**9)") {
  // Printed by numpy 2.
  std::vector<std::vector<std::uint64_t>> const expected{
      {209652396, 398764591, 924231285, 404868288, 441365315, 463622907},
      {717354021, 946286476, 784077896, 491263, 550290313, 224766667},
      {327741615, 976413892, 128500249, 296233462, 809211459, 980209875},
      {419326371, 479346978, 697429004, 269265991, 167655348, 113049152}};
  std::vector<std::uint32_t> const seeds{0, 1, 7, 4294967295U};
  for (std::size_t i = 0; i < seeds.size(); ++i) {
    CAPTURE(seeds[i]);
    FactorSeeds drawn(seeds[i]);
    for (std::uint64_t const each : expected[i]) CHECK(drawn.next() == each);
  }
}

TEST_CASE("columns become orthonormal, and span what they did") {
  for (std::int64_t const count : {1, 2, 5}) {
    CAPTURE(count);
    at::Tensor const before = at::randn({9, count}, at::kDouble);
    at::Tensor after = before.clone();
    orthogonalize(after, 0);
    CHECK(at::allclose(at::mm(after.t(), after), at::eye(count, at::kDouble)));
    CHECK(at::allclose(at::mm(after, at::mm(after.t(), before)), before));
    // Up to the sign of a column, there is one such basis.
    at::Tensor const basis = std::get<0>(at::linalg_qr(before));
    CHECK(at::allclose(basis.abs(), after.abs()));
  }
}

TEST_CASE("a column of zeros is no number divided by zero") {
  for (std::int64_t const count : {1, 2, 5}) {
    CAPTURE(count);
    at::Tensor columns = at::randn({9, count});
    columns.select(1, 0).zero_();
    orthogonalize(columns, 0);
    CHECK(columns.isfinite().all().item<bool>());
  }
  at::Tensor zeros = at::zeros({9, 1});
  orthogonalize(zeros, 0);
  CHECK(zeros.count_nonzero().item<std::int64_t>() == 0);
}

TEST_CASE("epsilon is added to the norm") {
  at::Tensor column = at::full({4, 1}, 1.0);  // of norm 2
  orthogonalize(column, 0.5);
  CHECK(at::allclose(column, at::full({4, 1}, 0.4)));
}

TEST_CASE("a parameter is a matrix of its outermost dimension's rows") {
  auto const is = [](LowRank const& found, std::int64_t rows, std::int64_t columns,
                     std::int64_t rank) {
    return found.rows == rows && found.columns == columns && found.rank == rank;
  };
  CHECK(is(LowRank::of(at::zeros({6, 10}), 4), 6, 10, 4));
  CHECK(is(LowRank::of(at::zeros({6, 4, 5}), 8), 6, 20, 6));
  CHECK(is(LowRank::of(at::zeros({6, 3}).t(), 8), 6, 3, 3));
  CHECK(is(LowRank::of(at::zeros({6, 4, 5, 5}).contiguous(at::MemoryFormat::ChannelsLast), 2), 6,
           100, 2));
  CHECK(is(LowRank::of(at::zeros({7}), 4), 7, 1, 1));
  CHECK(is(LowRank::of(at::zeros({}), 4), 0, 0, 0));
  CHECK(is(LowRank::of(at::zeros({0, 5}), 4), 0, 0, 0));
}

TEST_CASE("compression pays where the factors are smaller by more than the rate") {
  // 12 x 12: 144 elements, and two factors of 12 x 3: 72.
  LowRank const half = LowRank::of(at::zeros({12, 12}), 3);
  CHECK(!half.pays(2));
  CHECK(half.pays(1.99));
  CHECK(!LowRank::of(at::zeros({1000}), 4).pays(2));
  CHECK(!LowRank::of(at::zeros({}), 4).pays(0.5));
}

}  // namespace frugal_test::cluster_low_rank
