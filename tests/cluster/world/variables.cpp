// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <doctest/doctest.h>

#include <frugal/cluster/world/variables.hpp>

#include <map>
#include <string>

namespace frugal_test::cluster_variables {

using frugal::SettingsError;
using frugal::detail::Variables;

Variables of(std::map<std::string, std::string> const& all) {
  return Variables([all](char const* name) -> char const* {
    auto const found = all.find(name);
    return found == all.end() ? nullptr : found->second.c_str();
  });
}

TEST_CASE("numbers of the environment") {
  Variables const all = of({{"RANK", "3"}, {"EMPTY", ""}, {"PORT", "70000"}, {"WORD", "3x"}});
  CHECK(all.number("RANK") == 3);
  CHECK(all.require("RANK", "WORLD_SIZE") == 3);
  CHECK_FALSE(all.has("EMPTY"));
  CHECK_FALSE(all.number("MISSING"));
  CHECK_THROWS_WITH_AS(all.number("PORT", 1, 65535),
                       doctest::Contains("PORT is '70000' (World::from_environment): it must be a "
                                         "whole number from 1 to 65535"),
                       SettingsError);
  CHECK_THROWS_WITH_AS(all.number("WORD"), doctest::Contains("WORD is '3x'"), SettingsError);
  CHECK_THROWS_WITH_AS(all.number("RANK", 4), doctest::Contains("a whole number from 4 on"),
                       SettingsError);
  CHECK_THROWS_WITH_AS(
      all.require("WORLD_SIZE", "RANK"),
      doctest::Contains("RANK is set, and WORLD_SIZE is not (World::from_environment): a rank "
                        "without its world, or a world without the rank, starts another run than "
                        "the launcher meant. Set WORLD_SIZE too, or unset RANK to train in one "
                        "process."),
      SettingsError);
}

}  // namespace frugal_test::cluster_variables
