// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <frugal/metrics/rouge.hpp>

#include "text_cases.hpp"

#include <cmath>

namespace frugal_test::metrics_rouge {

using namespace frugal_test::metrics;

TEST_CASE("ROUGE is that of rouge-score, of words and of ids") {
  int compared = 0;
  Json const file = reference("text_scores.json");
  for (Json const& which : file.at("texts")) {
    CAPTURE(which.at("name").get<std::string>());
    for (Rouge const& rouge : every_text_way<Rouge>(Texts(which))) {
      Metrics const found = rouge.result();
      for (char const* name : {"rouge1", "rouge2", "rougeL"}) {
        CHECK(found[name] == doctest::Approx(which.at(name).get<double>()).epsilon(1e-12));
      }
      ++compared;
    }
  }
  CHECK(compared == 60);
}

TEST_CASE("a subsequence may have gaps") {
  Rouge rouge;
  rouge.add(Words{"a", "x", "b", "y", "c"}, Words{"a", "b", "c"});
  CHECK(rouge.result()["rougeL"] == doctest::Approx(2 * 3.0 / (5 + 3)));
  CHECK(rouge.result()["rouge2"] == 0);
}

TEST_CASE("no text is NaN, and a text without a reference is refused") {
  Rouge rouge;
  CHECK(std::isnan(rouge.result()["rouge1"]));
  CHECK_THROWS_WITH_AS(rouge.add_multi(Words{"a"}, {}), doctest::Contains("metric rouge"),
                       frugal::MetricError);
}

}  // namespace frugal_test::metrics_rouge
