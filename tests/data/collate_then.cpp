// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <frugal/data/collate_then.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace frugal_test::collate_then {

using frugal::CollateThen;
using frugal::KeyedCollate;
using frugal::SampleKey;
using Samples = std::vector<int>;

struct Joined {
  std::string operator()(Samples const& samples) const {
    std::string text;
    for (int const sample : samples) text += std::to_string(sample);
    return text;
  }
};
struct Numbered {
  std::string operator()(Samples const& samples, std::span<std::size_t const> numbers) const {
    return Joined{}(samples) + "@" + Joined{}(Samples(numbers.begin(), numbers.end()));
  }
};
struct Keyed {
  std::string operator()(std::string batch, std::span<SampleKey const> keys) const {
    for (auto const& key : keys) batch += ":" + std::to_string(key.index + key.epoch);
    return batch;
  }
};
struct Sized {
  std::size_t operator()(std::string const& batch) const { return batch.size(); }
};

static_assert(KeyedCollate<CollateThen<Joined, Keyed>, int>);
static_assert(!KeyedCollate<Joined, int> && !KeyedCollate<Numbered, int>);
static_assert(!KeyedCollate<CollateThen<Joined, Keyed>, std::string>);

std::vector<SampleKey> const keys{{.index = 4, .epoch = 1}, {.index = 7, .epoch = 1}};

TEST_CASE("the function of a batch gets the keys of its rows") {
  CHECK(CollateThen{Joined{}, Keyed{}}(Samples{1, 2}, keys) == "12:5:8");
}

TEST_CASE("the collate function gets the samples' numbers where it takes them") {
  CHECK(CollateThen{Numbered{}, Keyed{}}(Samples{1, 2}, keys) == "12@47:5:8");
}

TEST_CASE("a function that takes the batch alone may change its type") {
  CHECK(CollateThen{Joined{}, Sized{}}(Samples{1, 2, 33}, keys) == 4);
}

TEST_CASE("functions can be chained") {
  CHECK(CollateThen{CollateThen{Joined{}, Keyed{}}, Keyed{}}(Samples{1, 2}, keys) == "12:5:8:5:8");
}

}  // namespace frugal_test::collate_then
