// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <doctest/doctest.h>

#include <frugal/search/sampler/tpe_split.hpp>

#include "support/search_tpe.hpp"

#include <limits>
#include <set>
#include <vector>

namespace frugal_test::search_tpe_split {

using namespace support::search_tpe;
using frugal::hypervolume;
using frugal::hypervolume_subset;
using frugal::ObjectiveValues;

TEST_CASE("the good trials are Optuna's") {
  nlohmann::json const all = reference().at("splits");
  REQUIRE(all.size() == 5);
  for (nlohmann::json const& each : all) {
    CAPTURE(each.at("name").get<std::string>());
    SearchHistory const seen = history_of(each.at("trials"));
    std::vector<std::size_t> const numbers =
        frugal::detail::lessons(domain(), seen, seen.trials.size(), seen.trials.size());
    REQUIRE(numbers.size() == 40);
    for (nlohmann::json const& row : each.at("below")) {
      auto const count = row[0].get<std::size_t>();
      CAPTURE(count);
      frugal::TpeSplit const split = frugal::split_trials(seen, numbers, count);
      CHECK(split.below == row[1].get<std::vector<std::size_t>>());
      CHECK(split.below.size() + split.above.size() == 40);
    }
  }
}

/// The largest volume of `count` of the points, by trying all.
double best_volume(std::vector<ObjectiveValues> const& points, std::size_t count,
                   ObjectiveValues const& reference) {
  double best = 0;
  for (std::size_t mask = 0; mask < (std::size_t{1} << points.size()); ++mask) {
    std::vector<ObjectiveValues> some;
    for (std::size_t i = 0; i < points.size(); ++i) {
      if ((mask >> i) % 2 == 1) some.push_back(points[i]);
    }
    if (some.size() == count) best = std::max(best, hypervolume(some, reference));
  }
  return best;
}

TEST_CASE("the subset of a front has nearly the largest volume, and all of it first") {
  std::vector<ObjectiveValues> front;
  for (int i = 0; i < 9; ++i) {
    double const x = 0.1 + 0.1 * i;
    front.push_back({x, 0.3 / x + (i % 3 == 0 ? 0.01 : 0.0)});
  }
  ObjectiveValues const reference{1.1 * 0.9, 1.1 * 3.01};
  for (std::size_t count = 1; count <= 9; ++count) {
    CAPTURE(count);
    std::vector<std::size_t> const chosen = hypervolume_subset(front, count);
    CHECK(std::set<std::size_t>(chosen.begin(), chosen.end()).size() == count);
    std::vector<ObjectiveValues> some;
    for (std::size_t const each : chosen) some.push_back(front.at(each));
    double const best = best_volume(front, count, reference);
    // Greedy choice has at least 1 - 1/e of the largest volume; the first point has all of it.
    CHECK(hypervolume(some, reference) >= (count == 1 ? 1 - 1e-12 : 0.632) * best);
  }
}

TEST_CASE("of equal points one is taken before the others, and of infinite ones the smallest") {
  std::vector<ObjectiveValues> const points{{1, 4}, {1, 4}, {2, 3}, {4, 1}};
  std::vector<std::size_t> const three = hypervolume_subset(points, 3);
  CHECK(std::set<std::size_t>(three.begin(), three.end()) == std::set<std::size_t>{0, 2, 3});
  CHECK(hypervolume_subset(points, 4).size() == 4);
  double const infinite = std::numeric_limits<double>::infinity();
  CHECK(hypervolume_subset({{infinite, 1}, {3, 2}, {1, 9}}, 2) == std::vector<std::size_t>{2, 1});
}

TEST_CASE("a split has as many good trials as there are, and no more") {
  SearchHistory seen;
  for (int i = 0; i < 3; ++i) {
    seen.trials.push_back({.rungs = {{.values = {3.0 - i}}}, .state = TrialState::complete});
  }
  frugal::TpeSplit const all = frugal::split_trials(seen, {0, 1, 2}, 5);
  CHECK(all.below == std::vector<std::size_t>{0, 1, 2});
  CHECK(all.above.empty());
  frugal::TpeSplit const one = frugal::split_trials(seen, {0, 1, 2}, 1);
  CHECK(one.below == std::vector<std::size_t>{2});
  CHECK(one.above == std::vector<std::size_t>{0, 1});
  CHECK(frugal::split_trials(seen, {}, 2).below.empty());
}

}  // namespace frugal_test::search_tpe_split
