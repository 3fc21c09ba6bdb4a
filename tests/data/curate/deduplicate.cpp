// SPDX-License-Identifier: Apache-2.0
// torch-free, optimised
#include <frugal/data/curate/deduplicate.hpp>

#include "support/files.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <map>
#include <random>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

namespace frugal_test::data_curate_deduplicate {

using frugal::Curation;
using frugal::Deduplicate;
using frugal::KeepSample;

TEST_CASE("a mark lies next to a file, and within a folder") {
  support::TemporaryFolder folder;
  std::ofstream(folder / "x.txt") << "x";
  CHECK(frugal::curated_marker_of(folder / "x.txt") == folder / "x.txt.curated");
  CHECK(frugal::curated_marker_of(folder.path()) == folder / ".curated");
}

TEST_CASE("a mark reads as it was written, and the last one counts") {
  support::TemporaryFolder folder;
  CHECK(!frugal::curated_mark(folder.path()));
  frugal::mark_curated(folder.path(), {.name = "a \"b\"\n", .why = ""});
  frugal::mark_curated(folder.path(), {.name = "gold", .why = "Zoë chose\n1 by 1"});
  auto const mark = frugal::curated_mark(folder.path());
  REQUIRE(mark);
  CHECK(mark->name == "gold");
  CHECK(mark->why == "Zoë chose\n1 by 1");
  CHECK(support::entries(folder.path()) == 1);
}

TEST_CASE("a marker that cannot be understood is an error, and no permission") {
  support::TemporaryFolder folder;
  for (std::string const text :
       {"", "gold", "{}", R"({"format":"frugal curated","name":""})",
        R"({"format":"frugal curated"})", R"({"format":"x","name":"gold"})"}) {
    std::ofstream(folder / ".curated") << text;
    CHECK_THROWS_AS(frugal::curated_mark(folder.path()), frugal::FormatError);
  }
}

TEST_CASE("a mark needs a name and a place") {
  support::TemporaryFolder folder;
  CHECK_THROWS_AS(frugal::mark_curated(folder.path(), {}), frugal::SettingsError);
  CHECK_THROWS_AS(frugal::mark_curated(folder / "no" / "file", {.name = "x", .why = ""}),
                  frugal::StoreError);
}

struct Texts {
  std::uint64_t size() const { return texts.size(); }
  std::string get(std::uint64_t index) const { return texts.at(static_cast<std::size_t>(index)); }
  std::vector<std::string> texts;
};

std::string words(std::size_t count, std::mt19937_64& random) {
  std::string text;
  for (std::size_t i = 0; i < count; ++i) text += "w" + std::to_string(random() % 1'000'000) + " ";
  return text;
}

/// The text with one of its words replaced by another, `count` times.
std::string edited(std::string const& text, std::size_t count, std::mt19937_64& random) {
  std::vector<std::string> parts;
  for (std::size_t begin = 0, end; (end = text.find(' ', begin)) != text.npos; begin = end + 1) {
    parts.push_back(text.substr(begin, end - begin));
  }
  for (; count > 0; --count) parts[random() % parts.size()] = "x" + std::to_string(random());
  std::string out;
  for (std::string const& each : parts) out += each + ' ';
  return out;
}

/// Texts of which many are copies or edited copies of earlier ones, as on the web.
Texts corpus(std::size_t size, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  Texts out;
  while (out.texts.size() < size) {
    auto const dice = random() % 10;
    if (dice < 4 || out.texts.empty()) {
      out.texts.push_back(words(20 + random() % 100, random));
      continue;
    }
    std::string const earlier = out.texts[random() % out.texts.size()];
    out.texts.push_back(dice < 6 ? earlier : edited(earlier, 1 + random() % 4, random));
  }
  return out;
}

std::vector<std::vector<std::uint64_t>> sets_of(Texts const& set) {
  std::vector<std::vector<std::uint64_t>> out;
  frugal::Shingler shingler;
  for (std::string const& text : set.texts) {
    auto const found = shingler.set_of(text);
    out.emplace_back(found.begin(), found.end());
  }
  return out;
}

std::set<std::uint64_t> indices_of(Curation const& curation) {
  std::set<std::uint64_t> out;
  for (frugal::Removed const& each : curation.removed) out.insert(each.index);
  return out;
}

TEST_CASE("of copies the first stays, and each other names it") {
  Curation const found = frugal::deduplicate(Texts{{"a", "b", "a", "", "c", "a", "b", ""}});
  REQUIRE(found.removed.size() == 4);
  CHECK(found.samples == 8);
  CHECK(found.bytes == 6);
  CHECK(found.kept() == 4);
  CHECK(found.copies() == 4);
  CHECK(found.removed_bytes() == 3);
  CHECK(found.removed[0] == frugal::Removed{.index = 2,
                                            .twin = 0,
                                            .similarity = 1,
                                            .copy = true,
                                            .through = 0,
                                            .through_similarity = 1,
                                            .bytes = 1});
  CHECK(found.removed[1].twin == 0);
  CHECK(found.removed[2].twin == 1);
  CHECK(found.removed[3].twin == 3);
}

TEST_CASE("all that is removed is as alike as the exact comparison says") {
  Texts const set = corpus(1500, 1);
  auto const sets = sets_of(set);
  Curation const found = frugal::deduplicate(set, {.threads = 2});
  CHECK(found.removed.size() > 400);
  auto const removed = indices_of(found);
  int chains = 0;
  for (frugal::Removed const& each : found.removed) {
    auto const& a = sets[each.index];
    CHECK(each.similarity == frugal::jaccard(a, sets[each.twin]));
    CHECK(each.through_similarity == frugal::jaccard(a, sets[each.through]));
    CHECK(each.through_similarity >= 0.8);
    CHECK(each.copy == (set.texts[each.index] == set.texts[each.twin]));
    CHECK(each.bytes == set.texts[each.index].size());
    CHECK(!removed.contains(each.twin));
    CHECK(each.twin < each.index);
    chains += each.through != each.twin;
  }
  CHECK(chains > 0);
}

TEST_CASE("of all pairs of a few thousand texts, as many are found as the S-curve says") {
  // Pairs that are alike with no other text: then each is found by itself or not at all.
  std::mt19937_64 random(5);
  Texts set;
  for (int i = 0; i < 1500; ++i) {
    std::string const text = words(150, random);
    set.texts.push_back(text);
    set.texts.push_back(edited(text, 1 + random() % 4, random));
  }
  auto const sets = sets_of(set);
  frugal::Bands const bands;
  double expected = 0, variance = 0;
  for (std::size_t i = 0; i < sets.size(); i += 2) {
    double const similarity = frugal::jaccard(sets[i], sets[i + 1]);
    if (similarity < 0.8) continue;
    double const recall = bands.recall(similarity);
    expected += recall;
    variance += recall * (1 - recall);
  }
  Curation const found = frugal::deduplicate(set, Deduplicate{});
  CHECK(variance > 10);
  CHECK(std::abs(static_cast<double>(found.removed.size()) - expected) < 4 * std::sqrt(variance));
  for (frugal::Removed const& each : found.removed) CHECK((each.twin ^ each.index) == 1);
}

TEST_CASE("with certain recall, the groups are those of comparing all pairs") {
  Texts const set = corpus(500, 3);
  auto const sets = sets_of(set);
  frugal::Groups groups;
  std::set<std::uint64_t> expected;
  for (std::size_t i = 0; i < sets.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      if (set.texts[i] == set.texts[j] || frugal::jaccard(sets[i], sets[j]) >= 0.7)
        groups.join(i, j);
    }
  }
  for (std::size_t i = 0; i < sets.size(); ++i) {
    if (groups.find(i) != i) expected.insert(i);
  }
  // 60 bands of 4: at a similarity of 0.7 a pair is missed once in ten million times.
  Curation const found = frugal::deduplicate(
      set, {.bands = {.bands = 60, .rows = 4}, .threshold = 0.7, .bucket_reach = 500});
  CHECK(indices_of(found) == expected);
  for (frugal::Removed const& each : found.removed) CHECK(each.twin == groups.find(each.index));
}

TEST_CASE("the result is the same for 1 to 8 threads, and for little memory and much") {
  Texts const set = corpus(1200, 7);
  Curation const expected = frugal::deduplicate(set, {.threads = 1});
  CHECK(expected.spilled == 0);
  CHECK(expected.removed.size() > 300);
  support::TemporaryFolder folder;
  for (unsigned threads = 1; threads <= 8; ++threads) {
    for (std::uint64_t const memory : {std::uint64_t{1} << 16, std::uint64_t{1} << 30}) {
      // 1,200 texts have 24,000 band keys of 16 bytes: six times the lower limit.
      Curation const found =
          frugal::deduplicate(set, {.threads = threads, .memory = memory, .spill = folder.path()});
      CHECK(found.removed == expected.removed);
      CHECK(found.bytes == expected.bytes);
      CHECK(found.candidates == expected.candidates);
      CHECK(found.compared == expected.compared);
      CHECK((found.spilled > 0) == (memory == 1U << 16));
    }
  }
  CHECK(support::entries(folder.path()) == 0);
}

TEST_CASE("the longest of a group stays if asked for, the first of several such") {
  std::mt19937_64 random(9);
  std::string const text = words(100, random);
  Texts const set{{text, text + "more", text + "evenmore", text, text + "evenmore"}};
  Curation const found = frugal::deduplicate(set, {.keep = KeepSample::longest});
  REQUIRE(found.removed.size() == 4);
  for (frugal::Removed const& each : found.removed) CHECK(each.twin == 2);
  CHECK(found.removed.back().copy);
  CHECK(!found.removed.front().copy);
  CHECK(frugal::deduplicate(set, {.keep = KeepSample::first}).removed.front().twin == 0);
}

TEST_CASE("copies alone are found without near-duplicates") {
  std::mt19937_64 random(9);
  std::string const text = words(100, random);
  Curation const found = frugal::deduplicate(Texts{{text, text + "more", text}}, {.near = false});
  REQUIRE(found.removed.size() == 1);
  CHECK(found.removed[0].index == 2);
  CHECK(found.candidates == 0);
}

TEST_CASE("many texts that are all alike are one group, with a limited number of comparisons") {
  std::mt19937_64 random(2);
  std::string const text = words(400, random);
  Texts set;
  for (int i = 0; i < 600; ++i) set.texts.push_back(edited(text, 1, random));
  Curation const found = frugal::deduplicate(set, {.bucket_reach = 4});
  CHECK(found.removed.size() == 599);
  CHECK(found.candidates <= 600 * 5 * 20);
  CHECK(found.candidates < 600 * 599 / 2);
}

TEST_CASE("texts without words are copies or nothing") {
  CHECK(frugal::deduplicate(Texts{{"...", "!!!", "...", ""}}).removed.size() == 1);
  CHECK(frugal::deduplicate(Texts{}).removed.empty());
}

TEST_CASE("a sample that is no text is read through a function") {
  struct Entry {
    int id;
    std::string text;
  };
  struct Entries {
    std::uint64_t size() const { return 3; }
    Entry get(std::uint64_t index) const {
      return {static_cast<int>(index), index == 1 ? "x" : "y"};
    }
    std::string identity() const { return "entries v1"; }
  };
  Curation const found =
      frugal::deduplicate(Entries{}, {.name = "entries", .price = {.per_hour = 2}},
                          [](Entry const& each) { return each.text; });
  CHECK(indices_of(found) == std::set<std::uint64_t>{2});
  CHECK(found.identity == "entries v1");
  CHECK(found.name == "entries");
  CHECK(found.price.per_hour == 2);
  CHECK(found.method.find("260 MinHashes in 20 bands of 13") != std::string::npos);
  CHECK(found.method.find("at least 0.8, verified") != std::string::npos);
}

TEST_CASE("what the set throws comes out, the first of several, with any number of threads") {
  struct Broken {
    std::uint64_t size() const { return 1000; }
    std::string get(std::uint64_t index) const {
      if (index % 64 == 63 && index > 500) throw std::runtime_error(std::to_string(index));
      return std::to_string(index);
    }
  };
  for (unsigned threads = 1; threads <= 8; ++threads) {
    CHECK_THROWS_WITH(frugal::deduplicate(Broken{}, {.threads = threads}), "511");
  }
}

TEST_CASE("settings that make no sense are refused by name") {
  auto const where = [](Deduplicate const& settings) {
    try {
      frugal::deduplicate(Texts{}, settings);
    } catch (frugal::SettingsError const& error) {
      return error.fault().where;
    }
    return std::string("nothing was thrown");
  };
  CHECK(where({.threshold = 0}) == "Deduplicate::threshold");
  CHECK(where({.threshold = 1.01}) == "Deduplicate::threshold");
  CHECK(where({.threshold = std::nan("")}) == "Deduplicate::threshold");
  CHECK(where({.bands = {.bands = 0}}) == "Deduplicate::bands");
  CHECK(where({.bands = {.bands = 70000, .rows = 70000}}) == "Deduplicate::bands");
  CHECK(where({.memory = 65535}) == "Deduplicate::memory");
  CHECK(where({.bucket_reach = 0}) == "Deduplicate::bucket_reach");
  CHECK(where({.shingles = {.length = 0}}) == "Shingles::length");
  CHECK(where({.threshold = 1}) == "nothing was thrown");
}

struct Chosen : Texts {
  std::string curated() const { return "gold"; }
};

TEST_CASE("a curated set is deduplicated only under its name") {
  Chosen const set{{{"a", "a"}}};
  try {
    frugal::deduplicate(set, {.even_if_curated = "silver"});
    FAIL("nothing was thrown");
  } catch (frugal::SettingsError const& error) {
    CHECK(error.fault().what == "the set \"gold\" is marked as curated");
    CHECK(error.fault().fix.find(".even_if_curated = \"gold\"") != std::string::npos);
  }
  CHECK(frugal::deduplicate(set, {.even_if_curated = "gold"}).removed.size() == 1);
}

TEST_CASE("data next to a marker is deduplicated only under its name") {
  support::TemporaryFolder folder;
  frugal::mark_curated(folder / "x.jsonl", {.name = "hand-picked", .why = "Ann read them all"});
  Texts const set{{"a", "a"}};
  try {
    frugal::deduplicate(set, {.data = folder / "x.jsonl"});
    FAIL("nothing was thrown");
  } catch (frugal::SettingsError const& error) {
    CHECK(error.fault().why == "Ann read them all");
  }
  CHECK(frugal::deduplicate(set, {.data = folder / "x.jsonl", .even_if_curated = "hand-picked"})
            .removed.size() == 1);
  CHECK(frugal::deduplicate(set, {.data = folder / "y.jsonl"}).removed.size() == 1);
}

}  // namespace frugal_test::data_curate_deduplicate
