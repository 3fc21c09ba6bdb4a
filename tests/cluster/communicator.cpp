// SPDX-License-Identifier: Apache-2.0
// needs: cluster
#include <doctest/doctest.h>

#include <frugal/cluster/communicator.hpp>

#include "support/ranks.hpp"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace frugal_test::cluster_communicator {

using frugal::ClusterError;
using frugal::Communicator;
namespace ranks = support::ranks;

TEST_CASE("four ranks gather, exchange, collect and add up") {
  std::vector<bool> right(4, false);
  auto const errors = ranks::run(4, [&](std::shared_ptr<Communicator> const& all) {
    std::int64_t const rank = all->rank();
    at::Tensor const rows = all->gather(at::full({2, 3}, rank, at::kLong), "rows");
    bool ok = rows.equal(at::arange(4).view({4, 1, 1}).expand({4, 2, 3}));

    at::Tensor mine = at::arange(8, at::kFloat) + 10.0 * static_cast<double>(rank);
    at::Tensor parts = at::empty({8});
    all->exchange(parts, mine, "parts");
    at::Tensor const own = at::arange(2 * rank, 2 * rank + 2, at::kFloat);
    ok = ok && parts.view({4, 2}).equal(at::arange(4, at::kFloat).view({4, 1}) * 10 + own);

    at::Tensor one = at::full({2}, static_cast<double>(rank)), everyone = at::empty({8});
    all->collect(everyone, one, "numbers");
    ok = ok && everyone.view({4, 2}).equal(at::arange(4, at::kFloat).view({4, 1}).expand({4, 2}));

    at::Tensor sum = at::full({3}, static_cast<double>(rank + 1));
    all->complete(all->start_sum(sum), "a sum");
    ok = ok && sum.equal(at::full({3}, 10.0));
    right[static_cast<std::size_t>(rank)] = ok && all->hosts().size() == 4;
  });
  CHECK(ranks::none(errors));
  CHECK(right == std::vector<bool>(4, true));
}

TEST_CASE("a world of one needs no store") {
  auto const all = Communicator::join(frugal::World{});
  CHECK(all->gather(at::ones({2}), "x").equal(at::ones({1, 2})));
  at::Tensor in = at::arange(4), out = at::empty({4}, at::kLong);
  all->exchange(out, in, "x");
  CHECK(out.equal(in));
}

TEST_CASE("a rank that ends is an error in the others, which name what they were doing") {
  auto const errors =
      ranks::run(4,
                 [](std::shared_ptr<Communicator> const& all) {
                   static_cast<void>(all->gather(at::ones({1}), "the first"));
                   if (all->rank() == 2) return;
                   static_cast<void>(all->gather(at::ones({1}), "the second"));
                 },
                 {.join = std::chrono::seconds(60), .collective = std::chrono::seconds(5)});
  for (int rank : {0, 1, 3}) {
    std::string const& error = errors[static_cast<std::size_t>(rank)];
    CAPTURE(error);
    CHECK(error.starts_with("frugal: rank " + std::to_string(rank) +
                            " of 4 could not complete the second ("));
    CHECK(error.find(": rank 2 (") != std::string::npos);
    CHECK(error.find(") left the run before the others (") != std::string::npos);
    CHECK(error.find("rank 0 (") == std::string::npos);
    CHECK(error.find("rank 3 (") == std::string::npos);
  }
  CHECK(errors[2].empty());
}

}  // namespace frugal_test::cluster_communicator
