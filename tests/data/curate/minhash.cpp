// SPDX-License-Identifier: Apache-2.0
// torch-free, optimised
#include <frugal/data/curate/minhash.hpp>

#include <doctest/doctest.h>

#include <frugal/data/curate/deduplicator.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

namespace frugal_test::data_curate_minhash {

using frugal::ShingleOf;
using frugal::Shingler;
using Set = std::vector<std::uint64_t>;
using frugal::MinHash;
using Signature = std::vector<std::uint32_t>;

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

Signature signature_of(MinHash const& hashes, std::vector<std::uint64_t> const& elements) {
  Signature out(hashes.size());
  hashes.signature(elements, out);
  return out;
}

/// Two random sets of `size` elements, `shared` of them in both.
std::pair<std::vector<std::uint64_t>, std::vector<std::uint64_t>> overlapping(
    std::size_t size, std::size_t shared, std::mt19937_64& random) {
  std::vector<std::uint64_t> a(size), b(size);
  for (std::size_t i = 0; i < size; ++i) {
    a[i] = random();
    b[i] = i < shared ? a[i] : random();
  }
  std::shuffle(b.begin(), b.end(), random);
  return {a, b};
}

TEST_CASE("a signature is the minimum of each function over the elements, in any order") {
  for (std::uint32_t const size : {1U, 7U, 8U, 32U, 33U, 260U}) {
    MinHash const hashes(size, 5);
    std::mt19937_64 random(size);
    std::vector<std::uint64_t> elements(2500);  // more than a block
    for (auto& each : elements) each = random();
    // Of single elements a signature is the function itself.
    Signature expected(size, 0xffffffffU);
    for (std::uint64_t const each : elements) {
      Signature const one = signature_of(hashes, {each});
      for (std::size_t i = 0; i < size; ++i) expected[i] = std::min(expected[i], one[i]);
    }
    CHECK(signature_of(hashes, elements) == expected);
    std::shuffle(elements.begin(), elements.end(), random);
    elements.insert(elements.end(), elements.begin(), elements.begin() + 100);
    CHECK(signature_of(hashes, elements) == expected);
  }
}

TEST_CASE("functions are affine and bijective modulo 2^32") {
  MinHash const hashes(260, 1);
  auto const at = [&](std::uint32_t x) {
    return signature_of(hashes, {std::uint64_t{x} << 32 | 99U});
  };
  Signature const zero = at(0), one = at(1), many = at(123456789);
  for (std::size_t i = 0; i < zero.size(); ++i) {
    std::uint32_t const factor = one[i] - zero[i];
    CHECK(factor % 2 == 1);  // hence invertible
    CHECK(many[i] == factor * 123456789U + zero[i]);
  }
}

TEST_CASE("a machine without AVX2 computes the same signature") {
  std::mt19937_64 random(1);
  std::vector<std::uint32_t> elements(77), factor(40), add(40), one(40, ~0U), other(40, ~0U);
  for (auto* const each : {&elements, &factor, &add}) {
    for (auto& value : *each) value = static_cast<std::uint32_t>(random());
  }
  frugal::detail::lower_all_minima(elements, factor.data(), add.data(), one.data(), 40);
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2") != 0) {
    frugal::detail::lower_all_minima_avx2(elements, factor.data(), add.data(), other.data(), 40);
    CHECK(one == other);
  }
#endif
  for (std::size_t i = 0; i < 40; ++i) {
    std::uint32_t least = ~0U;
    for (std::uint32_t const x : elements) least = std::min(least, factor[i] * x + add[i]);
    CHECK(one[i] == least);
  }
}

TEST_CASE("an empty set has the greatest signature") {
  CHECK(signature_of(MinHash(5), {}) == Signature(5, 0xffffffffU));
}

TEST_CASE("estimates have the mean and the spread of independent random hashes") {
  std::mt19937_64 random(11);
  for (double const share : {0.2, 0.5, 0.8, 0.95}) {
    for (std::size_t const size : {30U, 300U, 3000U}) {
      auto const shared = static_cast<std::size_t>(std::lround(share * static_cast<double>(size)));
      double const exact = static_cast<double>(shared) / static_cast<double>(2 * size - shared);
      double const variance = exact * (1 - exact) / 260;
      int const rounds = 300;
      double sum = 0, squares = 0;
      for (int round = 0; round < rounds; ++round) {
        MinHash const hashes(260, random());
        auto const [a, b] = overlapping(size, shared, random);
        double const off =
            MinHash::estimate(signature_of(hashes, a), signature_of(hashes, b)) - exact;
        sum += off;
        squares += off * off;
      }
      CAPTURE(share);
      CAPTURE(size);
      // The seeds are fixed: four standard errors of the mean, and of the variance.
      CHECK(std::abs(sum / rounds) < 4 * std::sqrt(variance / rounds));
      CHECK(std::abs(squares / rounds / variance - 1) < 4 * std::sqrt(2.0 / rounds));
    }
  }
}

TEST_CASE(
    "texts are estimated within four standard errors of the exact similarity, as by datasketch") {
  std::ifstream file(std::string(FRUGAL_TEST_DIR) + "/reference/curate.json");
  auto const all = nlohmann::json::parse(file);
  auto const texts = all.at("texts").get<std::vector<std::string>>();
  MinHash const hashes(all.at("hashes").get<std::uint32_t>());
  int pairs = 0;
  for (auto const& each : all.at("similarities")) {
    frugal::Shingler shingler(
        {.of = each.at("of") == "words" ? frugal::ShingleOf::words : frugal::ShingleOf::characters,
         .length = each.at("length"),
         .fold = each.at("fold")});
    std::vector<Signature> signatures;
    for (std::string const& text : texts) {
      auto const set = shingler.set_of(text);
      signatures.push_back(signature_of(hashes, {set.begin(), set.end()}));
    }
    for (std::size_t i = 0; i < texts.size(); ++i) {
      for (std::size_t j = 0; j < i; ++j) {
        if (each.at("sizes").at(i) == 0 || each.at("sizes").at(j) == 0) continue;
        double const exact = each.at("jaccard").at(i).at(j);
        double const theirs = each.at("datasketch").at(i).at(j);
        double const most = 4 * std::sqrt(exact * (1 - exact) / 260) + 1e-12;
        CHECK(std::abs(MinHash::estimate(signatures[i], signatures[j]) - exact) <= most);
        CHECK(std::abs(theirs - exact) <= most);
        ++pairs;
      }
    }
  }
  CHECK(pairs > 500);
}

TEST_CASE("pairs share a band as often as the S-curve says") {
  frugal::Bands const bands;
  CHECK(bands.hashes() == 260);
  CHECK(bands.recall(0.8) == doctest::Approx(1 - std::pow(1 - std::pow(0.8, 13), 20)));
  std::mt19937_64 random(17);
  for (std::size_t const shared : {170U, 178U, 186U, 193U}) {
    double const exact = static_cast<double>(shared) / static_cast<double>(400 - shared);
    double const expected = bands.recall(exact);
    int const rounds = 1500;
    int found = 0;
    for (int round = 0; round < rounds; ++round) {
      MinHash const hashes(260, random());
      auto const [a, b] = overlapping(200, shared, random);
      Signature const x = signature_of(hashes, a), y = signature_of(hashes, b);
      bool any = false;
      for (std::uint32_t band = 0; band < bands.bands; ++band) {
        any = any || bands.key(x, band) == bands.key(y, band);
      }
      found += any;
    }
    CAPTURE(exact);
    CHECK(std::abs(found - rounds * expected) <
          4 * std::sqrt(rounds * expected * (1 - expected)) + 1);
  }
}

TEST_CASE("equal rows of different bands are different keys") {
  frugal::Bands const bands{.bands = 2, .rows = 2};
  Signature const signature{1, 2, 1, 2};
  CHECK(bands.key(signature, 0) != bands.key(signature, 1));
}

TEST_CASE("signatures depend on the seed, and have at least one hash") {
  CHECK(signature_of(MinHash(8, 1), {42}) != signature_of(MinHash(8, 2), {42}));
  CHECK_THROWS_AS(MinHash(0), frugal::SettingsError);
  CHECK_THROWS_AS(MinHash(65537), frugal::SettingsError);
}

}  // namespace frugal_test::data_curate_minhash
