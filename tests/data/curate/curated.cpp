// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <frugal/data/curate/curated.hpp>

#include <doctest/doctest.h>

#include <frugal/data/curate/curation.hpp>
#include <frugal/data/loading/transformed.hpp>
#include <frugal/data/sampling/pass.hpp>

#include <cstddef>
#include <cstdint>
#include <random>
#include <set>
#include <span>
#include <string>
#include <vector>

namespace frugal_test::data_curate_curated {

using frugal::Kept;
using Indices = std::vector<std::uint64_t>;
using frugal::Curated;
using frugal::Curation;

Kept kept_of(std::uint64_t samples, Indices const& removed) {
  return {samples, removed, [](std::uint64_t index) { return index; }};
}

void check(std::uint64_t samples, Indices const& removed) {
  Kept const kept = kept_of(samples, removed);
  Indices expected;
  for (std::uint64_t i = 0, next = 0; i < samples; ++i) {
    bool const gone = next < removed.size() && removed[next] == i;
    next += gone;
    if (kept.contains(i) == gone) FAIL("sample " << i);
    if (!gone) expected.push_back(i);
  }
  REQUIRE(kept.size() == expected.size());
  for (std::uint64_t i = 0; i < expected.size(); ++i) {
    if (kept[i] != expected[i]) FAIL("kept sample " << i << " is " << kept[i]);
  }
  CHECK(!kept.contains(samples));
  CHECK(!kept.contains(samples + 1000));
}

TEST_CASE("every kept sample is found, at every size around a word and a block") {
  for (std::uint64_t const samples : {0U, 1U, 63U, 64U, 65U, 511U, 512U, 513U, 1024U, 5000U}) {
    check(samples, {});
    Indices every_third, all;
    for (std::uint64_t i = 0; i < samples; ++i) {
      if (i % 3 == 1) every_third.push_back(i);
      all.push_back(i);
    }
    check(samples, every_third);
    check(samples, all);
    if (samples > 0) check(samples, {samples - 1});
    if (samples > 1) check(samples, {0});
  }
}

TEST_CASE("every kept sample is found at random, however many are removed") {
  std::mt19937_64 random(1);
  for (std::uint64_t const share : {1U, 50U, 90U, 99U}) {
    Indices removed;
    for (std::uint64_t i = 0; i < 30'000; ++i) {
      if (random() % 100 < share) removed.push_back(i);
    }
    check(30'000, removed);
  }
}

TEST_CASE("kept samples around a long gap are found") {
  Indices removed;
  for (std::uint64_t i = 100; i < 20'100; ++i) removed.push_back(i);
  check(20'500, removed);
  check(20'101, removed);
}

TEST_CASE("indices that are not ascending or not in the set are refused") {
  CHECK_THROWS_AS(kept_of(5, {5}), frugal::StateError);
  CHECK_THROWS_AS(kept_of(5, {3, 3}), frugal::StateError);
  CHECK_THROWS_AS(kept_of(5, {3, 1}), frugal::StateError);
  CHECK_THROWS_AS(kept_of(0, {0}), frugal::StateError);
}

struct Letters {
  std::uint64_t size() const { return text.size(); }
  std::string get(std::uint64_t index) const { return text.substr(index, 1); }
  std::string name(std::uint64_t index) const { return "letter " + std::to_string(index); }
  std::string identity() const { return "letters " + text; }
  std::string text;
};

struct Drawn {  // another sample in every epoch
  std::uint64_t size() const { return 4; }
  std::string get(frugal::SampleKey const& key) const {
    return std::to_string(key.index) + "/" + std::to_string(key.seed) + "/" +
           std::to_string(key.epoch);
  }
  std::string identity() const { return "drawn"; }
};

static_assert(frugal::IdentifiedSet<Curated<Letters>> && frugal::CuratedSet<Curated<Letters>>);
static_assert(frugal::SampleSet<Curated<Drawn>> && !frugal::CuratedSet<Letters>);

Curation of(Letters const& set) { return frugal::deduplicate(set, {.name = "letters"}); }

TEST_CASE("a curated set has the samples that stay, under the names that they had") {
  Letters const set{"abcacdb"};
  Curated const curated(set, of(set));
  CHECK(curated.size() == 4);
  std::string all;
  for (std::uint64_t i = 0; i < curated.size(); ++i) all += curated.get(i);
  CHECK(all == "abcd");
  CHECK(curated.name(3) == "letter 5");
  CHECK(curated.curated() == "letters");
}

TEST_CASE("a report of a set behind one function does not fit the set behind another") {
  struct Upper {
    std::string operator()(std::string const& text) const { return "upper " + text; }
    std::string identity() const { return "1"; }
  };
  struct Lower {
    std::string operator()(std::string const& text) const { return "lower " + text; }
    std::string identity() const { return "1"; }
  };
  frugal::Transformed const upper(Letters{"abab"}, Upper{});
  Curation const report = frugal::parse_curation(
      frugal::curation_text(frugal::deduplicate(upper, {.name = "letters"})), "report");
  CHECK(Curated(upper, report).size() == 2);
  CHECK_THROWS_AS(Curated(frugal::Transformed(Letters{"abab"}, Lower{}), report),
                  frugal::DataError);
}

TEST_CASE("an identity that is not UTF-8 is known again in the report that was written") {
  Letters const set{"aab\xff"};
  auto const report = frugal::parse_curation(frugal::curation_text(of(set)), "report");
  CHECK(Curated(set, report).size() == 3);
  CHECK_THROWS_AS(Curated(Letters{"aabc"}, report), frugal::DataError);
}

TEST_CASE("every epoch of any order has each kept sample exactly once, from any place on") {
  Letters const set{"abcacdbefgfaehii"};
  Curated const curated(set, of(set));
  for (std::uint64_t begin = 0; begin <= curated.size(); ++begin) {
    frugal::Pass order(curated.size(), {.batch = 3}, "set"),
        whole(curated.size(), {.batch = 1}, "set");
    std::vector<std::string> seen;
    std::vector<std::uint64_t> batch;
    auto const read = [&](frugal::Pass& from, std::uint64_t position) {
      seen.clear();
      from.seek({.seed = 3, .epoch = 2, .position = position});
      for (auto slice = from.advance(); slice.count != 0; slice = from.advance()) {
        batch.resize(slice.count);
        from.indices(slice, std::span(batch));
        for (std::uint64_t const index : batch) seen.push_back(curated.get(index));
      }
      return seen;
    };
    auto const all = read(whole, 0), rest = read(order, begin);
    CHECK(std::set<std::string>(all.begin(), all.end()).size() == 9);
    CHECK(all.size() == 9);
    CHECK(rest == std::vector(all.begin() + static_cast<std::ptrdiff_t>(begin), all.end()));
  }
}

TEST_CASE("random transforms draw by the index in the whole set") {
  Curation curation{.name = "d", .identity = "drawn", .method = "", .samples = 4};
  curation.removed = {{.index = 1, .twin = 0}};
  Curated const curated(Drawn{}, curation);
  CHECK(frugal::read_sample(curated, {.index = 1, .seed = 7, .epoch = 9}) == "2/7/9");
}

TEST_CASE("a report that was stored and read back gives the same set") {
  Letters const set{"abcacdb"};
  Curation const read = frugal::parse_curation(frugal::curation_text(of(set)), "text");
  CHECK(Curated(set, read).identity() == Curated(set, of(set)).identity());
}

TEST_CASE(
    "a report of another set is refused with both identities, unless overridden by its name") {
  Letters const set{"abcacdb"}, other{"abcacdd"};
  auto const fault = [&](frugal::CuratedOptions const& options) {
    try {
      Curated const curated(other, of(set), options);
    } catch (frugal::DataError const& error) {
      return error.fault();
    }
    return frugal::Fault{.what = "nothing was thrown", .where = "", .why = "", .fix = ""};
  };
  CHECK(
      fault({}).why ==
      "the identity of the set is \"letters abcacdd\", and that of the report \"letters abcacdb\"");
  CHECK(fault({}).fix.find(".even_if_changed = \"letters\"") != std::string::npos);
  CHECK(fault({.even_if_changed = "others"}).what ==
        "the report of a curation belongs to another set");
  CHECK(fault({.even_if_changed = "letters"}).what == "nothing was thrown");
}

TEST_CASE("a report of a set of another size is refused, overridden or not") {
  Letters const set{"abcacdb"}, other{"abcac"};
  CHECK_THROWS_AS(Curated(other, of(set), {.even_if_changed = "letters"}), frugal::DataError);
}

TEST_CASE("a report without a name cannot override anything") {
  Letters const set{"aa"}, other{"ab"};
  CHECK_THROWS_AS(Curated(other, frugal::deduplicate(set)), frugal::DataError);
}

TEST_CASE("a curated set is not deduplicated again, except under its name") {
  Letters const set{"abcacdb"};
  Curated const curated(set, of(set));
  CHECK_THROWS_AS(frugal::deduplicate(curated, {}), frugal::SettingsError);
  CHECK(frugal::deduplicate(curated, {.even_if_curated = "letters"}).removed.empty());
}

TEST_CASE("a set chosen by hand has a name, and all its samples") {
  Curated const chosen(Letters{"aab"}, "gold");
  CHECK(chosen.size() == 3);
  CHECK_THROWS_AS(frugal::deduplicate(chosen, {}), frugal::SettingsError);
  CHECK_THROWS_AS(Curated(Letters{"aab"}, ""), frugal::SettingsError);
}

TEST_CASE("curate needs no identity, and gives the set and the report") {
  struct Plain {
    std::uint64_t size() const { return 3; }
    std::string get(std::uint64_t index) const { return index == 1 ? "x" : "y"; }
  };
  auto const [curated, curation] = frugal::curate(Plain{}, {.name = "plain"});
  CHECK(curated.size() == 2);
  CHECK(curated.curated() == "plain");
  CHECK(curation.removed.size() == 1);
  CHECK(curated.name(1) == "sample 1");
}

TEST_CASE("identities of different choices from one set differ") {
  Letters const set{"abab"};
  Curation one = of(set), other = one;
  other.removed.pop_back();
  CHECK(Curated(set, one).identity() != Curated(set, other).identity());
  CHECK(Curated(set, one).identity() != set.identity());
}

}  // namespace frugal_test::data_curate_curated
