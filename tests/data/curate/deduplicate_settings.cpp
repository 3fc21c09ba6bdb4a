// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <frugal/data/curate/deduplicate_settings.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <limits>
#include <string>

namespace frugal_test::data_curate_deduplicate_settings {

using frugal::Deduplicate;
using frugal::detail::checked;
using frugal::detail::method_of;

std::string where(Deduplicate const& settings) {
  try {
    static_cast<void>(checked(settings));
  } catch (frugal::SettingsError const& error) {
    return error.fault().where;
  }
  return "nothing was thrown";
}

TEST_CASE("the defaults are those of the page, and the folder for spilling is the system's") {
  Deduplicate const used = checked({});
  CHECK(used.threshold == 0.8);
  CHECK(used.bands.hashes() == 260);
  CHECK_FALSE(used.spill.empty());
  CHECK(checked({.spill = "here"}).spill == "here");
}

TEST_CASE("a setting out of range is named") {
  for (double const wrong : {0.0, -1.0, 1.01, std::numeric_limits<double>::quiet_NaN()}) {
    CHECK(where({.threshold = wrong}) == "Deduplicate::threshold");
  }
  CHECK(where({.threshold = 1}) == "nothing was thrown");
  CHECK(where({.bands = {.bands = 0}}) == "Deduplicate::bands");
  CHECK(where({.bands = {.bands = 65536, .rows = 65536}}) == "Deduplicate::bands");  // 2^32
  CHECK(where({.bands = {.bands = 65536, .rows = 1}}) == "nothing was thrown");
  CHECK(where({.memory = 65535}) == "Deduplicate::memory");
  CHECK(where({.bucket_reach = 0}) == "Deduplicate::bucket_reach");
}

TEST_CASE("the report says in words what was done") {
  CHECK(method_of({.near = false}) == "copies by XXH3-128; the first of a group stays");
  CHECK(method_of({.threshold = 1, .keep = frugal::KeepSample::longest}) ==
        "copies by XXH3-128; near-duplicates by shingles of 5 words, folded, 260 MinHashes in 20 "
        "bands of 13, Jaccard similarity of at least 1, verified; the longest of a group stays");
}

}  // namespace frugal_test::data_curate_deduplicate_settings
