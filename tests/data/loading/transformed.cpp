// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <frugal/data/loading/transformed.hpp>

#include <doctest/doctest.h>

#include <concepts>
#include <cstdint>
#include <string>
#include <type_traits>

namespace frugal_test::data_transformed {

using frugal::SampleKey;
using frugal::Transformed;

struct Words {
  std::uint64_t size() const { return 3; }
  std::string get(std::uint64_t index) const { return std::string(index + 1, 'a'); }
  std::string name(std::uint64_t index) const { return "word " + std::to_string(index); }
  std::string identity() const { return "words v1"; }
};

struct Drawn {
  std::uint64_t size() const { return 3; }
  std::uint64_t get(SampleKey const& key) const { return key.epoch * 10 + key.index; }
};

struct Length {
  std::uint64_t operator()(std::string const& word) const { return word.size(); }
  std::string identity() const { return "length 2"; }
};

struct Cut {
  static constexpr int version = 1;
  int most;
  int operator()(std::string const&) const { return most; }
  std::string settings() const { return std::to_string(most); }
};

TEST_CASE("each sample goes through the function, under its name") {
  Transformed const set(Words{}, Length{});
  static_assert(frugal::SampleSet<decltype(set)>);
  static_assert(std::is_same_v<frugal::sample_of<Transformed<Words, Length>>, std::uint64_t>);
  CHECK(set.size() == 3);
  CHECK(set.get(2) == 3);
  CHECK(set.name(1) == "word 1");
}

TEST_CASE("a random function gets the sample's key, which no batch and no worker changes") {
  auto const drawn = [](std::string const& word, SampleKey const& key) {
    return word + std::to_string(key.seed) + std::to_string(key.epoch);
  };
  Transformed const set(Words{}, drawn);
  CHECK(frugal::read_sample(set, {.index = 1, .seed = 4, .epoch = 2}) == "aa42");
}

TEST_CASE("a set that is read by key stays one, and transforms follow each other") {
  Transformed const set(Transformed(Drawn{}, [](std::uint64_t n) { return n + 1; }),
                        [](std::uint64_t n) { return 2 * n; });
  static_assert(frugal::detail::ReadsByKey<std::remove_cv_t<decltype(set)>>);
  CHECK(frugal::read_sample(set, {.index = 1, .seed = 0, .epoch = 3}) == 64);
}

TEST_CASE("the identity is that of set and function, and no other pair has it") {
  struct Named {
    std::string text;
    int operator()(std::string const&) const { return 0; }
    std::string identity() const { return text; }
  };
  struct Set : Words {
    std::string text;
    std::string identity() const { return text; }
  };
  auto const identity = [](std::string set, std::string function) {
    return Transformed(Set{{}, std::move(set)}, Named{std::move(function)}).identity();
  };
  CHECK(identity("a", "b") == identity("a", "b"));
  CHECK(identity("a", "b") != identity("a", "c"));
  CHECK(identity("ab", "c") != identity("a", "bc"));
  static_assert(frugal::IdentifiedSet<Transformed<Words, Length>>);
}

TEST_CASE("two functions that say the same of themselves are told apart by their types") {
  struct Upper {
    int operator()(std::string const&) const { return 1; }
    std::string identity() const { return "1"; }
  };
  struct Lower {
    int operator()(std::string const&) const { return 2; }
    std::string identity() const { return "1"; }
  };
  CHECK(Transformed(Words{}, Upper{}).identity() != Transformed(Words{}, Lower{}).identity());
  CHECK(Transformed(Words{}, Upper{}).identity() == Transformed(Words{}, Upper{}).identity());
}

TEST_CASE("a function with a version and settings is part of the identity, as for a cache") {
  static_assert(frugal::IdentifiedSet<Transformed<Words, Cut>>);
  CHECK(Transformed(Words{}, Cut{3}).identity() == Transformed(Words{}, Cut{3}).identity());
  CHECK(Transformed(Words{}, Cut{3}).identity() != Transformed(Words{}, Cut{4}).identity());
}

TEST_CASE("what a run trains on is what the set and the function say, and a lambda says nothing") {
  frugal::DataIdentity of_length;
  Transformed(Words{}, Length{}).identify(of_length);
  CHECK(of_length.values().at("data") == "words v1");
  CHECK(of_length.values().at("transform").ends_with(", length 2"));
  frugal::DataIdentity of_lambda;
  Transformed(Words{}, [](std::string const&) { return 0; }).identify(of_lambda);
  CHECK(of_lambda.values().size() == 1);
}

TEST_CASE("without a version of the function there is no identity: a cache could be stale") {
  auto const plain = [](std::string const&) { return 0; };
  static_assert(!frugal::IdentifiedSet<Transformed<Words, decltype(plain)>>);
  struct Nameless {
    std::uint64_t size() const { return 1; }
    std::string get(std::uint64_t) const { return "a"; }
  };
  static_assert(!frugal::IdentifiedSet<Transformed<Nameless, Length>>);
}

template <class Set>
inline constexpr bool is_curated = requires(Set const& set) { set.curated(); };

TEST_CASE("a curated set stays so behind a transform") {
  struct Chosen : Words {
    std::string curated() const { return "the best"; }
  };
  CHECK(Transformed(Chosen{}, Length{}).curated() == "the best");
  static_assert(!is_curated<Transformed<Words, Length>>);
}

}  // namespace frugal_test::data_transformed
