// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <frugal/core/source/sample_set.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

namespace {

struct Squares {
  std::uint64_t size() const { return 4; }
  std::uint64_t get(std::uint64_t index) const { return index * index; }
};

struct Drawn {
  std::uint64_t size() const { return 2; }
  std::string get(frugal::SampleKey const& key) const {
    return std::to_string(key.index) + "/" + std::to_string(key.seed) + "/" +
           std::to_string(key.epoch);
  }
  std::string name(std::uint64_t index) const { return "drawing " + std::to_string(index); }
  std::string identity() const { return "v1"; }
};

struct Bulk : Squares {
  std::uint64_t get_batch(std::span<std::uint64_t const> indices) const { return indices.size(); }
};

struct Unsized {
  int get(std::uint64_t) const { return 0; }
};

struct Changed {  // get() is not const: no second thread may call it
  std::uint64_t size() const { return 1; }
  int get(std::uint64_t) { return 0; }
};

static_assert(frugal::SampleSet<Squares> && frugal::SampleSet<Drawn>);
static_assert(!frugal::SampleSet<Unsized> && !frugal::SampleSet<Changed>);
static_assert(frugal::IdentifiedSet<Drawn> && !frugal::IdentifiedSet<Squares>);
static_assert(frugal::BatchedSet<Bulk> && !frugal::BatchedSet<Squares>);
static_assert(std::is_same_v<frugal::sample_of<Drawn>, std::string>);

using Keys = std::span<frugal::SampleKey const>;
using Numbers = std::span<std::size_t const>;
using ByKey = decltype([](std::vector<int> const& samples, Keys) { return samples.size(); });
using ByNumber = decltype([](std::vector<int> const& samples, Numbers) { return samples.size(); });
using ByEither = decltype([](std::vector<int> const& samples, auto) { return samples.size(); });
static_assert(frugal::KeyedCollate<ByKey, int> && !frugal::KeyedCollate<ByKey, std::string>);
static_assert(!frugal::KeyedCollate<ByNumber, int> && !frugal::KeyedCollate<ByEither, int>);

}  // namespace

TEST_CASE("a set is read by index, or by index, seed and epoch") {
  CHECK(frugal::read_sample(Squares{}, {.index = 3, .seed = 7, .epoch = 1}) == 9);
  CHECK(frugal::read_sample(Drawn{}, {.index = 1, .seed = 7, .epoch = 2}) == "1/7/2");
}

TEST_CASE("a sample without a name is called by its number") {
  CHECK(frugal::sample_name(Squares{}, 2) == "sample 2");
  CHECK(frugal::sample_name(Drawn{}, 1) == "drawing 1");
}
