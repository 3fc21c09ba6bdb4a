// SPDX-License-Identifier: Apache-2.0
// needs: tensorboard
#include <doctest/doctest.h>

#include <frugal/report/sink/tensorboard_writer.hpp>

#include <algorithm>
#include <cstddef>
#include <limits>
#include <numeric>
#include <vector>

namespace frugal_test::policy_sink_histogram {

using frugal::HistogramSummary;
using frugal::detail::Histograms;

TEST_CASE("a histogram has every finite value in its bucket") {
  double const nan = std::numeric_limits<double>::quiet_NaN();
  double const inf = std::numeric_limits<double>::infinity();
  at::Tensor const values =
      at::tensor({-2.0, -0.5, 0.0, 0.0, 1e-30, 0.25, 0.25, 3.0, 1e25, nan, inf, -inf}, at::kDouble);
  Histograms histograms;
  HistogramSummary const all = histograms.of({values})[0];
  CHECK(all.count == 9);
  CHECK(all.min == -2);
  CHECK(all.max == 1e25);
  CHECK(std::accumulate(all.counts.begin(), all.counts.end(), 0.0) == 9);
  REQUIRE(all.limits.size() == all.counts.size());
  CHECK(std::is_sorted(all.limits.begin(), all.limits.end()));
  CHECK(all.counts.front() == 0);
  for (double const value : {-2.0, -0.5, 0.0, 0.25, 3.0, 1e25}) {
    auto const at = static_cast<std::size_t>(
        std::upper_bound(all.limits.begin(), all.limits.end(), value) - all.limits.begin());
    CAPTURE(value);
    REQUIRE(at < all.counts.size());
    CHECK(all.counts[at] == (value == 0.0 ? 3 : value == 0.25 ? 2 : 1));
  }
}

TEST_CASE("several tensors have the histograms that each has alone") {
  Histograms histograms;
  double const nan = std::numeric_limits<double>::quiet_NaN();
  std::vector<at::Tensor> const tensors{at::tensor({1.0, 2.0, 2.0}), at::empty({0}),
                                        at::tensor({nan, -1.0}), at::tensor({nan}),
                                        at::tensor({3, 4}, at::kLong)};
  auto const all = histograms.of(tensors);
  REQUIRE(all.size() == 5);
  CHECK(all[0].count == 3);
  CHECK(all[0].sum == 5);
  CHECK(all[0].sum_of_squares == 9);
  CHECK(all[1].count == 0);
  CHECK(all[2].count == 1);
  CHECK(all[2].min == -1);
  CHECK(all[2].max == -1);
  CHECK(all[3].count == 0);
  CHECK(all[3].limits.empty());
  CHECK(all[4].sum == 7);
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    CHECK(histograms.of({tensors[i]})[0].counts == all[i].counts);
  }
}

TEST_CASE("a histogram of a sparse tensor has what it stores, one of a complex tensor the sizes") {
  Histograms histograms;
  at::Tensor const sparse = at::sparse_coo_tensor(at::tensor({0, 2, 2}, at::kLong).reshape({1, 3}),
                                                  at::tensor({1.0, 2.0, 3.0}), {10});
  at::Tensor const complex = at::complex(at::tensor({3.0}), at::tensor({4.0}));
  auto const all = histograms.of({sparse, complex});
  CHECK(all[0].count == 2);
  CHECK(all[0].max == 5);
  CHECK(all[1].sum == 5);
}

}  // namespace frugal_test::policy_sink_histogram
