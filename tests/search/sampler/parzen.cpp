// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <doctest/doctest.h>

#include <frugal/search/sampler/parzen.hpp>

#include "support/search_two_samples.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <fstream>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace frugal_test::search_parzen {

using frugal::Choice;
using frugal::Distribution;
using frugal::Draw;
using frugal::Int;
using frugal::LogUniform;
using frugal::Parzen;
using frugal::Uniform;
using Points = std::vector<std::vector<double>>;

nlohmann::json cases() {
  std::ifstream file(std::string(FRUGAL_TEST_DIR) + "/reference/parzen.json");
  return nlohmann::json::parse(file).at("cases");
}

std::vector<Distribution> kinds_of(nlohmann::json const& of) {
  std::vector<Distribution> kinds;
  for (nlohmann::json const& each : of.at("kinds")) {
    kinds.push_back(frugal::parse_distribution(each.dump()).value());
  }
  return kinds;
}

Parzen estimator_of(nlohmann::json const& of) {
  Points const observed = of.at("observed").get<Points>();
  if (of.at("weights").is_null()) return {kinds_of(of), observed};
  return {kinds_of(of), observed, of.at("weights").get<std::vector<double>>()};
}

TEST_CASE("densities are Optuna's") {
  nlohmann::json const all = cases();
  REQUIRE(all.size() == 16);
  for (nlohmann::json const& each : all) {
    CAPTURE(each.at("name").get<std::string>());
    Parzen const own = estimator_of(each);
    Points const points = each.at("points").get<Points>();
    auto const logs = each.at("logs").get<std::vector<double>>();
    REQUIRE(points.size() == logs.size());
    for (std::size_t i = 0; i < points.size(); ++i) {
      CAPTURE(points[i][0]);
      CHECK(std::abs(own.log_density(points[i]) - logs[i]) < 1e-9 * std::abs(logs[i]));
    }
  }
}

TEST_CASE("samples are distributed as Optuna's") {
  std::size_t compared = 0;
  for (nlohmann::json const& each : cases()) {
    Points const others = each.at("samples").get<Points>();
    if (others.empty()) continue;
    CAPTURE(each.at("name").get<std::string>());
    Parzen const own = estimator_of(each);
    std::vector<Distribution> const kinds = kinds_of(each);
    Points samples;
    Draw draw({.seed = 5});
    for (std::size_t i = 0; i < 3000; ++i) samples.push_back(own.sample(draw));
    for (std::size_t k = 0; k < kinds.size(); ++k) {
      CAPTURE(k);
      std::vector<double> mine, theirs;
      for (auto const& sample : samples) {
        REQUIRE(frugal::has_value(kinds[k], sample[k]));
        mine.push_back(sample[k]);
      }
      for (auto const& sample : others) theirs.push_back(sample[k]);
      bool const named = std::holds_alternative<Choice>(kinds[k]);
      CHECK((named ? distance_of_names(mine, theirs) : distance_of_samples(mine, theirs)) < 1);
      ++compared;
    }
    // The density of a sample depends on all of its values: those of one kernel belong together.
    std::vector<double> mine, theirs;
    for (auto const& sample : samples) mine.push_back(own.log_density(sample));
    for (auto const& sample : others) theirs.push_back(own.log_density(sample));
    CHECK(distance_of_samples(mine, theirs) < 1);
  }
  CHECK(compared == 7 + 1 + 6 + 2);
}

TEST_CASE("probabilities of names and whole numbers are 1 in total, and samples have them") {
  Points const observed{{2, 3}, {0, 3}, {2, -1}, {1, 5}};
  Parzen const own({Choice{{"a", "b", "c"}}, Int{.low = -1, .high = 6, .step = 2}}, observed);
  Draw draw({.seed = 8});
  std::map<std::vector<double>, int> counts;
  for (int i = 0; i < 20000; ++i) ++counts[own.sample(draw)];
  double total = 0;
  for (double name : {0, 1, 2}) {
    for (double whole : {-1, 1, 3, 5}) {
      double const probability = std::exp(own.log_density(std::vector{name, whole}));
      total += probability;
      double const spread = std::sqrt(20000 * probability * (1 - probability));
      CHECK(std::abs(counts[{name, whole}] - 20000 * probability) < 4 * spread);
    }
  }
  CHECK(total == doctest::Approx(1).epsilon(1e-12));
}

TEST_CASE("the density of real numbers is 1 in total") {
  Parzen const own({LogUniform{1e-3, 10}}, {{0.002}, {0.0021}, {5}});
  double total = 0;
  constexpr int parts = 4000;
  double const range = std::log(10 / 1e-3);
  for (int i = 0; i < parts; ++i) {
    double const x = std::exp(std::log(1e-3) + (i + 0.5) / parts * range);
    total += std::exp(own.log_density(std::vector{x})) * range / parts;
  }
  CHECK(total == doctest::Approx(1).epsilon(1e-6));
}

TEST_CASE("one value needs no density, and other values have none") {
  constexpr double infinite = std::numeric_limits<double>::infinity();
  Parzen const one({Uniform{3, 3}, Choice{{"only"}}, Uniform{0, 1}}, {{3, 0, 0.5}});
  Parzen const without({Uniform{0, 1}}, {{0.5}});
  CHECK(one.log_density(std::vector<double>{3, 0, 0.2}) ==
        doctest::Approx(without.log_density(std::vector{0.2})));
  Draw draw({.seed = 1});
  std::vector<double> const sample = one.sample(draw);
  CHECK(sample[0] == 3);
  CHECK(sample[1] == 0);
  CHECK(without.log_density(std::vector{1.5}) == -infinite);
  Parzen const whole({Int{.low = 0, .high = 3}, Uniform{0, 1}}, {{1, 0.5}});
  CHECK(whole.log_density(std::vector{-1, 0.5}) == -infinite);
}

TEST_CASE("older observations weigh less") {
  CHECK(frugal::recency_weights(0).empty());
  CHECK(frugal::recency_weights(25) == std::vector<double>(25, 1));
  CHECK(frugal::recency_weights(26).front() == 1.0 / 26);
  std::vector<double> const many = frugal::recency_weights(125);
  CHECK(many.front() == 1.0 / 125);
  CHECK(many[99] == 1);
  CHECK(many[1] - many[0] == doctest::Approx((1 - 1.0 / 125) / 99));
}

TEST_CASE("points and weights must fit") {
  auto const refusal = [](auto&& make) -> std::string {
    try {
      make();
    } catch (frugal::SettingsError const& error) {
      return error.what();
    }
    return {};
  };
  CHECK(refusal([] { Parzen({Uniform{}}, {{0.5, 1}}); }).find("2 values for 1") !=
        std::string::npos);
  CHECK(refusal([] { Parzen({Uniform{}}, {{0.5}}, {1, 1}); }).find("2 weights for 1") !=
        std::string::npos);
  CHECK(refusal([] {
          Parzen({Uniform{}}, {}).log_density(std::vector<double>{});
        }).find("0 values for 1") != std::string::npos);
}

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

}  // namespace frugal_test::search_parzen
