// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/cluster/measure_link.hpp>

#include <frugal/error.hpp>
#include <frugal/inline.hpp>

#include <ATen/ATen.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace frugal::detail {

FRUGAL_INLINE double seconds_of_sum(Communicator& all, std::int64_t bytes,
                                    LinkMeasurement const& how) {
  at::Tensor sum = at::zeros({bytes / 4}, at::TensorOptions(at::kFloat).device(how.device));
  std::vector<double> seconds;
  for (int round = 0; round <= how.rounds; ++round) {
    // All begin at about the same time: one that comes late would be taken for a slow link.
    static_cast<void>(all.gather(at::zeros({1}), "the start of a measurement"));
    auto const begun = std::chrono::steady_clock::now();
    if (auto const work = all.start_sum(sum)) all.complete(work, "the measurement of a link");
    static_cast<void>(sum[0].item<float>());  // a GPU's exchange is awaited here
    std::chrono::duration<double> const taken = std::chrono::steady_clock::now() - begun;
    at::Tensor const mine = at::full({1}, taken.count(), at::kDouble);
    double const slowest = all.gather(mine, "the time of a measurement").max().item<double>();
    if (round > 0) seconds.push_back(slowest);  // the first one opens connections
  }
  auto const middle = seconds.begin() + static_cast<std::ptrdiff_t>(seconds.size() / 2);
  std::nth_element(seconds.begin(), middle, seconds.end());
  return *middle;
}

}  // namespace frugal::detail

namespace frugal {

FRUGAL_INLINE LinkSpeed measure_link(Communicator& all, LinkMeasurement const& how) {
  auto const refuse = [&](std::string what, char const* why, char const* fix) {
    throw SettingsError({.what = std::move(what), .where = "measure_link", .why = why, .fix = fix});
  };
  if (all.size() == 1) {
    refuse("a world of one process has no link", "nothing is sent",
           "Start two processes or more, or give plan_ranks the data sheet's tcp_link.");
  }
  if (how.rounds < 1 || !(how.long_enough > 0) || how.most_bytes < 4096) {
    refuse("rounds is " + std::to_string(how.rounds) + ", long_enough is " +
               std::to_string(how.long_enough) + " s, most_bytes is " +
               std::to_string(how.most_bytes),
           "there is nothing to measure with these",
           "Take 1 round or more, a time above 0 and 4096 bytes or more.");
  }
  constexpr std::int64_t least = 4;
  double const small = detail::seconds_of_sum(all, least, how);
  std::int64_t bytes = std::min(std::int64_t{1} << 16, how.most_bytes);
  double large = detail::seconds_of_sum(all, bytes, {.rounds = 1, .device = how.device});
  while (large < how.long_enough && bytes < how.most_bytes) {
    bytes = std::min(4 * bytes, how.most_bytes);
    large = detail::seconds_of_sum(all, bytes, {.rounds = 1, .device = how.device});
  }
  large = detail::seconds_of_sum(all, bytes, how);
  if (!(large > small)) {
    throw ClusterError({.what = "a sum of " + std::to_string(bytes) +
                                " bytes takes no longer than one of " + std::to_string(least),
                        .where = all.world().text(),
                        .why = "something else used the link or the processors meanwhile, or "
                               "most_bytes is small",
                        .fix = "Measure again, with a larger most_bytes."});
  }
  return detail::link_of_sums(all.size(), least, small, bytes, large);
}

}  // namespace frugal
