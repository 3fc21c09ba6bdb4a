// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <doctest/doctest.h>

#include <frugal/error.hpp>
#include <frugal/model/where.hpp>

#include <string>
#include <type_traits>
#include <vector>

namespace frugal_test::model_where {

using Two = frugal::Where<"encoder.*", "head.*">;

TEST_CASE("a name matches if one of the patterns does") {
  static_assert(Two::matches("encoder.0.weight") && Two::matches("head.bias"));
  static_assert(!Two::matches("embedding.weight") && !Two::matches("head"));
  CHECK(Two::patterns[1] == "head.*");
  CHECK(std::is_same_v<Two, frugal::Where<"encoder.*", "head.*">>);
}

bool as_patterns(frugal::NamePatterns const& patterns, std::string const& name) {
  return patterns.matches(name);
}

TEST_CASE("the type and its run-time twin select the same") {
  for (std::string const name :
       {"encoder.0.weight", "head.bias", "embedding.weight", "head", "encoder."}) {
    CHECK(as_patterns(Two{}, name) == Two::matches(name));
    CHECK(as_patterns({"encoder.*", "head.*"}, name) == Two::matches(name));
  }
  CHECK(as_patterns(Two{}, "head.bias"));
}

TEST_CASE("a pattern that matches nothing is refused, with the names that there are") {
  std::vector<std::string> const names{"encoder.0.weight", "head.weight"};
  frugal::NamePatterns const good = Two{};
  CHECK_NOTHROW(good.require_in(names, "Adapt", "modules"));
  frugal::NamePatterns const bad{"encoder.*", "haed.*"};
  try {
    bad.require_in(names, "Adapt", "modules");
    FAIL("not refused");
  } catch (frugal::SettingsError const& error) {
    CHECK(error.fault().what == "the pattern 'haed.*' matches nothing");
    CHECK(error.fault().where == "Adapt");
    CHECK(error.fault().why == "the modules are: encoder.0.weight head.weight");
  }
  CHECK_THROWS_AS(good.require_in({}, "Adapt", "modules"), frugal::SettingsError);
}

TEST_CASE("an empty pattern is refused") {
  CHECK_THROWS_AS(frugal::NamePatterns({"head.*", ""}), frugal::SettingsError);
}

}  // namespace frugal_test::model_where
