// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <frugal/search/trials/ranking.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace frugal_test::search_ranking {

using frugal::crowding_distances;
using frugal::hypervolume;
using frugal::ObjectiveValues;
using frugal::pareto_ranks;
using Points = std::vector<ObjectiveValues>;
using frugal::best_first;
using Order = std::vector<std::size_t>;

nlohmann::json cases() {
  std::ifstream file(std::string(FRUGAL_TEST_DIR) + "/reference/pareto.json");
  return nlohmann::json::parse(file).at("cases");
}

TEST_CASE("fronts, distances and volumes are Optuna's") {
  nlohmann::json const all = cases();
  REQUIRE(all.size() == 7);
  for (nlohmann::json const& each : all) {
    CAPTURE(each.at("name").get<std::string>());
    Points const points = each.at("points").get<Points>();
    std::vector<std::size_t> const ranks = pareto_ranks(points);
    CHECK(ranks == each.at("ranks").get<std::vector<std::size_t>>());
    Points front;
    for (std::size_t i = 0; i < points.size(); ++i) {
      if (ranks[i] == 0) front.push_back(points[i]);
    }
    std::vector<double> const distances = crowding_distances(front);
    std::vector<double> const expected = each.at("crowding").get<std::vector<double>>();
    REQUIRE(distances.size() == expected.size());
    for (std::size_t i = 0; i < distances.size(); ++i) {
      if (expected[i] < 0) {
        CHECK(std::isinf(distances[i]));
      } else {
        CHECK(distances[i] == doctest::Approx(expected[i]).epsilon(1e-12));
      }
    }
    double const volume = each.at("hypervolume").get<double>();
    CHECK(hypervolume(points, each.at("reference").get<ObjectiveValues>()) ==
          doctest::Approx(volume).epsilon(1e-9));
  }
}

TEST_CASE("a trial without a number is the worst, and no crash") {
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  CHECK(pareto_ranks({{nan, nan}, {1, 2}, {2, 1}, {1, nan}}) ==
        std::vector<std::size_t>{2, 0, 0, 1});
  CHECK(hypervolume({{nan, 0}, {1, 1}}, {2, 2}) == 1);
  CHECK(hypervolume({{nan, nan}}, {2, 2}) == 0);
  for (double const each : crowding_distances({{1, nan}, {2, nan}, {3, nan}}))
    CHECK(!std::isnan(each));
}

TEST_CASE("equal points share a front, and count once in a volume") {
  CHECK(pareto_ranks({{1, 1}, {1, 1}, {2, 2}}) == std::vector<std::size_t>{0, 0, 1});
  CHECK(hypervolume({{1, 1, 1}, {1, 1, 1}}, {2, 2, 2}) == 1);
  CHECK(hypervolume({{2, 0}}, {2, 2}) == 0);  // no better than the reference
  CHECK(crowding_distances({{1, 1}, {1, 1}}) == std::vector<double>{0, 0});
}

TEST_CASE("nothing is nothing, and points of unequal length are refused") {
  CHECK(pareto_ranks({}).empty());
  CHECK(crowding_distances({}).empty());
  CHECK(hypervolume({}, {1, 1}) == 0);
  std::string text;
  try {
    pareto_ranks({{1, 2}, {1}});
  } catch (frugal::SettingsError const& error) {
    text = error.what();
  }
  CHECK(text.find("a point has 1 objectives, and the first one 2") != std::string::npos);
}

constexpr double infinite = std::numeric_limits<double>::infinity();
constexpr double nan = std::numeric_limits<double>::quiet_NaN();

TEST_CASE("one objective: by value, equal ones by their place, what is not finite last") {
  CHECK(best_first({}).empty());
  CHECK(best_first({{3}, {1}, {2}}) == Order{1, 2, 0});
  CHECK(best_first({{2}, {1}, {2}, {1}}) == Order{1, 3, 0, 2});
  CHECK(best_first({{nan}, {5}, {infinite}, {4}, {-infinite}}) == Order{3, 1, 0, 2, 4});
}

TEST_CASE("several objectives: by front, then the ends of a front and the less crowded first") {
  // Front 0: places 0, 2, 4, 5; place 4 is close to 2. Front 1: places 1 and 3.
  std::vector<frugal::ObjectiveValues> const points{{0, 10},  {9, 9},     {4, 4},
                                                    {5, 9.5}, {3.9, 4.5}, {10, 0}};
  Order const order = best_first(points);
  CHECK(order == Order{0, 5, 2, 4, 1, 3});
  CHECK(best_first({{1, nan}, {2, 2}}) == Order{1, 0});
}

}  // namespace frugal_test::search_ranking
