// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <doctest/doctest.h>

#include <frugal/data/curate/kept.hpp>

#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

namespace frugal_test::data_curate_kept {

using frugal::Kept;
using Indices = std::vector<std::uint64_t>;

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

}  // namespace frugal_test::data_curate_kept
