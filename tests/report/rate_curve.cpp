// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <doctest/doctest.h>

#include <frugal/report/rate_curve.hpp>

#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

namespace frugal_test::watch_rate_curve {

using frugal::RateCurve;
using frugal::RatePoint;

nlohmann::json curves() {
  std::ifstream file(std::string(FRUGAL_TEST_DIR) + "/reference/range_test.json");
  return nlohmann::json::parse(file).at("curves");
}

/// Rates of 1, 2, 4, ... for losses that are smoothed.
RateCurve curve_of(nlohmann::json const& which) {
  frugal::detail::Smoothing smoothing(which.at("keep"));
  RateCurve curve;
  for (double const loss : which.at("losses")) {
    curve.points.push_back({std::exp2(curve.points.size()), loss, smoothing.add(loss)});
  }
  curve.suggestion = frugal::detail::steepest(curve.points);
  return curve;
}

TEST_CASE("losses are smoothed, and their steepest fall is found, as with numpy") {
  for (auto const& which : curves()) {
    CAPTURE(which.at("name").get<std::string>());
    RateCurve const curve = curve_of(which);
    for (std::size_t i = 0; i < curve.points.size(); ++i) {
      CHECK(curve.points[i].smoothed ==
            doctest::Approx(which.at("smoothed")[i].get<double>()).epsilon(1e-12));
    }
    if (which.at("steepest").is_null()) {
      CHECK_FALSE(curve.suggestion);
    } else {
      CHECK(curve.suggestion == std::exp2(which.at("steepest").get<int>()));
    }
  }
}

TEST_CASE("a curve of one or two points has no steepest fall") {
  CHECK_FALSE(frugal::detail::steepest({}));
  CHECK_FALSE(frugal::detail::steepest({{1, 2, 2}}));
  CHECK_FALSE(frugal::detail::steepest({{1, 2, 2}, {2, 1, 1}}));
}

std::string text_of(RateCurve const& curve) {
  std::ostringstream out;
  out << curve;
  return out.str();
}

TEST_CASE("a drawing shows the loss over the rates, and marks the suggestion") {
  RateCurve curve;
  for (int i = 0; i <= 59; ++i) {
    double const loss = i < 30 ? 2 : i < 50 ? 1 + std::pow((50 - i) / 20.0, 3) : i - 49;
    curve.points.push_back({std::pow(10.0, i - 30), loss, loss});
  }
  curve.suggestion = curve.points[40].rate;
  CHECK(text_of(curve) ==
        "      2.1 |                                                    ^^^^^^^^\n"
        "          |*******************************                    *\n"
        "          |                               *\n"
        "          |\n"
        "          |                                *\n"
        "          |                                 *\n"
        "          |                                  *\n"
        "          |                                   *\n"
        "          |                                    **\n"
        "          |                                      **\n"
        "          |                                        ***\n"
        "        1 |                                           ********\n"
        "          +------------------------------------------------------------\n"
        "           1e-30                                                  1e+29\n"
        "                                                   ^ 1e+10: the loss falls fastest\n");
}

TEST_CASE("a curve without a fall says so, and one without a step too") {
  RateCurve curve;
  CHECK(text_of(curve) == "no step was made\n");
  curve.points = {{1, 2, 2}, {2, 2, 2}};
  CHECK(text_of(curve).find("the loss never falls\n") != std::string::npos);
  curve.points.resize(1);
  CHECK(text_of(curve).find("the loss never falls\n") != std::string::npos);
}

}  // namespace frugal_test::watch_rate_curve
