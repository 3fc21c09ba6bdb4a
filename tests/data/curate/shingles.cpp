// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <doctest/doctest.h>

#include <frugal/data/curate/shingles.hpp>

#include <cstdint>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace frugal_test::data_curate_shingles {

using frugal::ShingleOf;
using frugal::Shingler;

using Set = std::vector<std::uint64_t>;

Set set_of(std::string const& text, frugal::Shingles const& shingles = {}) {
  Shingler shingler(shingles);
  auto const found = shingler.set_of(text);
  return {found.begin(), found.end()};
}

TEST_CASE("shingle sets and their similarities are those of Python's sets") {
  std::ifstream file(std::string(FRUGAL_TEST_DIR) + "/reference/curate.json");
  auto const all = nlohmann::json::parse(file);
  auto const texts = all.at("texts").get<std::vector<std::string>>();
  for (auto const& each : all.at("similarities")) {
    frugal::Shingles const settings{
        .of = each.at("of") == "words" ? ShingleOf::words : ShingleOf::characters,
        .length = each.at("length"),
        .fold = each.at("fold")};
    CAPTURE(each.at("of").get<std::string>());
    CAPTURE(settings.length);
    std::vector<Set> sets;
    for (std::string const& text : texts) sets.push_back(set_of(text, settings));
    for (std::size_t i = 0; i < texts.size(); ++i) {
      CHECK(sets[i].size() == each.at("sizes").at(i).get<std::size_t>());
      for (std::size_t j = 0; j < i; ++j) {
        CHECK(frugal::jaccard(sets[i], sets[j]) == each.at("jaccard").at(i).at(j).get<double>());
      }
    }
  }
}

TEST_CASE("shingles come in the order of the text, with repetitions") {
  Shingler shingler({.length = 2});
  auto const found = shingler.of("a b a b");
  CHECK(found.size() == 3);
  CHECK(found[0] == found[2]);
  CHECK(found[0] != found[1]);
  CHECK(set_of("a b a b", {.length = 2}).size() == 2);
}

TEST_CASE("a word boundary is part of a shingle") {
  CHECK(set_of("ab c", {.length = 2}) != set_of("a bc", {.length = 2}));
}

TEST_CASE("a shingler gives the same for a text, whatever it read before") {
  for (ShingleOf const of : {ShingleOf::words, ShingleOf::characters}) {
    Shingler shingler({.of = of, .length = 3});
    for (std::string const text : {"one two three four", "", "x", " . ", "one two three four"}) {
      auto const found = shingler.set_of(text);
      CHECK(Set(found.begin(), found.end()) == set_of(text, {.of = of, .length = 3}));
    }
  }
}

TEST_CASE("bytes that are no UTF-8 are shingles like others") {
  std::string const broken =
      "\xff\xfe\x80\x80"
      "abc\xe2\x82";
  for (ShingleOf const of : {ShingleOf::words, ShingleOf::characters}) {
    for (bool const fold : {false, true}) {
      auto const found = set_of(broken, {.of = of, .length = 2, .fold = fold});
      CHECK(!found.empty());
      CHECK(found != set_of("abc", {.of = of, .length = 2, .fold = fold}));
    }
  }
  CHECK(!set_of("\x80", {.of = ShingleOf::characters}).empty());
}

TEST_CASE("the similarity of sets is 1 for the same, 0 for disjoint and for empty ones") {
  Set const a{1, 2, 3}, b{3, 4}, none;
  CHECK(frugal::jaccard(a, a) == 1);
  CHECK(frugal::jaccard(a, b) == 0.25);
  CHECK(frugal::jaccard(b, a) == 0.25);
  CHECK(frugal::jaccard(a, none) == 0);
  CHECK(frugal::jaccard(none, none) == 0);
}

TEST_CASE("a shingle of nothing is refused") {
  CHECK_THROWS_AS(Shingler({.length = 0}), frugal::SettingsError);
}

}  // namespace frugal_test::data_curate_shingles
