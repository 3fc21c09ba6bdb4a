// SPDX-License-Identifier: Apache-2.0
// needs: cluster
// left to clang: shard.cpp has the same templates
#include <doctest/doctest.h>

#include <frugal/cluster/communicator.hpp>
#include <frugal/cluster/measure_link.hpp>
#include <frugal/error.hpp>

#include "support/ranks.hpp"

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace frugal_test::cluster_measure_link {

using frugal::Communicator;
using frugal::LinkSpeed;
namespace ranks = support::ranks;

TEST_CASE("two sums give the link, by hand: six latencies, and 3/2 of the bytes for four ranks") {
  LinkSpeed const link = frugal::detail::link_of_sums(4, 4, 0.006, 20'000'004, 3.006);
  CHECK(link.latency == doctest::Approx(0.001));
  CHECK(link.bytes_per_second == doctest::Approx(10e6));
}

TEST_CASE("four ranks measure the same link, and predict a sum of another size with it") {
  std::vector<LinkSpeed> found(4);
  std::vector<double> seconds(4);
  constexpr std::int64_t other = std::int64_t{24} << 20;
  auto const errors = ranks::run(4, [&](std::shared_ptr<Communicator> const& all) {
    auto const rank = static_cast<std::size_t>(all->rank());
    found[rank] = frugal::measure_link(*all, {.rounds = 3, .long_enough = 0.05});
    seconds[rank] = frugal::detail::seconds_of_sum(*all, other, {.rounds = 3});
  });
  CHECK(errors == std::vector<std::string>(4));
  for (LinkSpeed const& each : found) {
    CHECK(each.latency == found.front().latency);
    CHECK(each.bytes_per_second == found.front().bytes_per_second);
  }
  // The loopback device: more than 10 MB/s, less than 100 GB/s; 100 ns to 100 ms.
  LinkSpeed const& link = found.front();
  CAPTURE(link.latency);
  CAPTURE(link.bytes_per_second);
  CHECK(link.bytes_per_second > 1e7);
  CHECK(link.bytes_per_second < 1e11);
  CHECK(link.latency > 1e-7);
  CHECK(link.latency < 0.1);
  double const predicted =
      6 * link.latency + 1.5 * static_cast<double>(other) / link.bytes_per_second;
  CAPTURE(seconds.front());
  CHECK(predicted < 8 * seconds.front());
  CHECK(predicted > seconds.front() / 8);
}

TEST_CASE("a world of one has no link, and nothing measures in no time") {
  auto const one = Communicator::join(frugal::World{});
  CHECK_THROWS_WITH_AS(frugal::measure_link(*one), doctest::Contains("has no link"),
                       frugal::SettingsError);
  auto const errors = ranks::run(2, [&](std::shared_ptr<Communicator> const& all) {
    for (frugal::LinkMeasurement const& how :
         {frugal::LinkMeasurement{.rounds = 0}, frugal::LinkMeasurement{.long_enough = 0},
          frugal::LinkMeasurement{.most_bytes = 4}}) {
      CHECK_THROWS_AS(frugal::measure_link(*all, how), frugal::SettingsError);
    }
  });
  CHECK(ranks::none(errors));
}

}  // namespace frugal_test::cluster_measure_link
