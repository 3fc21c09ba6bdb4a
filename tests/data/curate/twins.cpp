// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <doctest/doctest.h>

#include <frugal/data/curate/twins.hpp>

#include <cmath>
#include <cstdint>
#include <vector>

namespace frugal_test::data_curate_twins {

using frugal::KeepSample;
using frugal::Removed;
using frugal::detail::Twins;

// 2 is like 5, 5 is like 9; 9 and 12 are copies. 20 and 30 are copies.
std::vector<frugal::detail::Alike> const chain = {
    {2, 5, 0.9, false}, {5, 9, 0.8, false}, {9, 12, 1, true}, {20, 30, 1, true}};

TEST_CASE("samples that have a twin are listed once, ascending") {
  Twins const twins(chain);
  CHECK(std::vector(twins.samples().begin(), twins.samples().end()) ==
        std::vector<std::uint64_t>{2, 5, 9, 12, 20, 30});
}

TEST_CASE("all of a group go but the first, each with the sample that joins it") {
  std::vector<std::uint64_t> const bytes = {1, 2, 3, 3, 7, 7};
  auto const removed = Twins(chain).removed(bytes, KeepSample::first);
  REQUIRE(removed.size() == 4);
  CHECK(removed[0] == Removed{5, 2, 0.9, false, 2, 0.9, 2});
  CHECK(removed[1].index == 9);
  CHECK(removed[1].twin == 2);
  CHECK(std::isnan(removed[1].similarity));  // nobody has compared these two
  CHECK(removed[1].through == 5);
  CHECK(removed[1].through_similarity == 0.8);
  CHECK(removed[2].index == 12);
  CHECK(!removed[2].copy);  // of 9, but not of 2
  CHECK(removed[2].through == 9);
  CHECK(removed[3] == Removed{30, 20, 1, true, 20, 1, 7});
}

TEST_CASE("the longest of a group stays, the first of equal ones") {
  std::vector<std::uint64_t> const bytes = {1, 2, 3, 3, 7, 8};
  auto const removed = Twins(chain).removed(bytes, KeepSample::longest);
  REQUIRE(removed.size() == 4);
  CHECK(removed[0].index == 2);
  CHECK(removed[0].through == 5);
  CHECK(removed[1] == Removed{5, 9, 0.8, false, 9, 0.8, 2});
  CHECK(removed[2] == Removed{12, 9, 1, true, 9, 1, 3});
  CHECK(removed[3].index == 20);
}

TEST_CASE("nothing alike, nothing removed") {
  CHECK(Twins({}).removed({}, KeepSample::first).empty());
}

}  // namespace frugal_test::data_curate_twins
