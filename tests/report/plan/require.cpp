// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <doctest/doctest.h>

#include <frugal/report/plan/require.hpp>

#include <string>
#include <vector>

namespace frugal_test::plan_near_names {

using namespace frugal::plan::detail;

TEST_CASE("edits are inserted, deleted and replaced characters") {
  CHECK(edits_between("kitten", "sitting") == 3);  // Wagner and Fischer's textbook case
  CHECK(edits_between("", "abc") == 3);
  CHECK(edits_between("abc", "") == 3);
  CHECK(edits_between("abc", "abc") == 0);
}

TEST_CASE("words are letters and digits, in lower case") {
  CHECK(words_of("NVIDIA A100-SXM4-80GB") ==
        std::vector<std::string>{"nvidia", "a100", "sxm4", "80gb"});
  CHECK(words_of(" - ").empty());
}

TEST_CASE("near names come first, all names if none is near, and none if there are none") {
  CHECK(near_names("spt", {"on_demand", "spot"}) == "near it are spot");
  CHECK(near_names("x", {"on_demand", "device"}) == "known are on_demand, device");
  CHECK(near_names("x", {}) == "there are none");
  CHECK(near_names(std::string(100000, 'x'), {"spot"}) == "known are spot");
}

}  // namespace frugal_test::plan_near_names
