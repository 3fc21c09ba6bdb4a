// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <doctest/doctest.h>

#include <frugal/search/sampler/truncated_normal.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

namespace frugal_test::search_truncated_normal {

using frugal::detail::log_normal_below;
using frugal::detail::log_normal_between;
using frugal::detail::normal_quantile;
using frugal::detail::truncated_normal;

TEST_CASE("probabilities and quantiles are Optuna's, in the tails too") {
  std::ifstream file(std::string(FRUGAL_TEST_DIR) + "/reference/parzen.json");
  nlohmann::json const all = nlohmann::json::parse(file).at("normal");
  auto const ends = all.at("ends").get<std::vector<std::pair<double, double>>>();
  auto const units = all.at("units").get<std::vector<double>>();
  auto const masses = all.at("masses").get<std::vector<double>>();
  auto const quantiles = all.at("quantiles").get<std::vector<std::vector<double>>>();
  REQUIRE(ends.size() == 10);
  for (std::size_t i = 0; i < ends.size(); ++i) {
    auto const [a, b] = ends[i];
    CAPTURE(a);
    CAPTURE(b);
    // Optuna's difference of two probabilities near 1/2 has 1e-13 of the one between 0 and 1e-3.
    CHECK(log_normal_between(a, b) == doctest::Approx(masses[i]).epsilon(1e-12));
    for (std::size_t k = 0; k < units.size(); ++k) {
      CAPTURE(units[k]);
      // Optuna's Newton steps end at 1e-8.
      double const scale = std::max(1e-4, std::abs(quantiles[i][k]));
      CHECK(std::abs(truncated_normal(units[k], a, b) - quantiles[i][k]) < 1e-9 * scale);
    }
  }
}

TEST_CASE("a quantile is the inverse of the probability") {
  for (double x = -60; x <= 0; x += 0.37) {
    CAPTURE(x);
    CHECK(normal_quantile(log_normal_below(x)) == doctest::Approx(x).epsilon(1e-12));
  }
  for (auto const& [a, b] : {std::pair{-3.0, 0.5}, {-40.0, -39.5}, {0.01, 0.0101}, {6.0, 50.0}}) {
    for (double u = 0.05; u < 1; u += 0.1) {
      double const x = truncated_normal(u, a, b);
      CAPTURE(x);
      CHECK(std::exp(log_normal_between(a, x) - log_normal_between(a, b)) ==
            doctest::Approx(u).epsilon(1e-9));
    }
  }
}

TEST_CASE("parts add up where one formula takes over from the other") {
  // Below -30 and below a width of 1e-3 / |a| series replace erfc() and a difference of two probabilities.
  for (double const edge : {-29.9999, -30.0, -30.0001, -1.0, 0.0, 5.0, -8.0}) {
    for (double const width : {0.005, 1.4e-3 / std::max(1.0, std::abs(edge))}) {
      CAPTURE(edge);
      CAPTURE(width);
      double const whole = log_normal_between(edge, edge + width), middle = edge + 0.55 * width;
      double const parts = std::exp(log_normal_between(edge, middle) - whole) +
                           std::exp(log_normal_between(middle, edge + width) - whole);
      CHECK(parts == doctest::Approx(1).epsilon(1e-10));
    }
  }
}

TEST_CASE("the ends are never passed, and nothing between equal ends") {
  constexpr double infinite = std::numeric_limits<double>::infinity();
  CHECK(truncated_normal(0, -2, 3) == -2);
  CHECK(truncated_normal(1, -2, 3) == 3);
  CHECK(truncated_normal(0.3, 2, 2) == 2);
  CHECK(log_normal_between(2, 2) == -infinite);
  CHECK(log_normal_below(infinite) == 0);
  CHECK(log_normal_below(-infinite) == -infinite);
  CHECK(log_normal_between(-infinite, infinite) == doctest::Approx(0));
  CHECK(log_normal_between(1, infinite) == doctest::Approx(log_normal_below(-1)).epsilon(1e-13));
  CHECK(std::abs(truncated_normal(0.5, -infinite, infinite)) < 1e-12);
}

}  // namespace frugal_test::search_truncated_normal
