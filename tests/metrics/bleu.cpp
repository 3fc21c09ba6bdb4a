// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <frugal/metrics/bleu.hpp>

#include "text_cases.hpp"

#include <array>
#include <cmath>
#include <string_view>

namespace frugal_test::metrics_bleu {

using namespace frugal_test::metrics;

TEST_CASE("corpus BLEU is sacrebleu's, of words and of ids") {
  int compared = 0;
  Json const file = reference("text_scores.json");
  for (Json const& which : file.at("texts")) {
    CAPTURE(which.at("name").get<std::string>());
    for (Bleu const& bleu : every_text_way<Bleu>(Texts(which))) {
      CHECK(bleu.result() == doctest::Approx(which.at("bleu").get<double>()).epsilon(1e-12));
      ++compared;
    }
  }
  CHECK(compared == 60);
}

TEST_CASE("a range of any tokens is a text, and a string is none") {
  std::array<std::string_view, 5> const text{"a", "b", "c", "d", "e"};
  Bleu bleu;
  bleu.add(text, text);
  CHECK(bleu.result() == doctest::Approx(100));
  CHECK(frugal::TokenSequence<std::vector<std::int64_t>>);
  CHECK_FALSE(frugal::TokenSequence<std::string>);
  CHECK_FALSE(frugal::TokenSequence<std::vector<double>>);
}

TEST_CASE("no text is NaN, and a text without a reference is refused") {
  Bleu bleu;
  CHECK(std::isnan(bleu.result()));
  CHECK_THROWS_WITH_AS(bleu.add_multi(Words{"a"}, {}), doctest::Contains("metric bleu"),
                       frugal::MetricError);
  CHECK(std::isnan(bleu.result()));
}

}  // namespace frugal_test::metrics_bleu
