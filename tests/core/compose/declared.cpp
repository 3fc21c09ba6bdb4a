// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <doctest/doctest.h>

#include <frugal/core/compose/declared.hpp>

#include <type_traits>

namespace frugal_test::compose_declared {

using frugal::list;
using namespace frugal::detail;

struct Nothing {};
struct Some {
  using needs = list<int>;
  using after = list<char, long>;
};

struct Divided {
  using properties = list<frugal::property::knows_ranks>;
};
struct OfKind {
  using kind = Divided;
  using properties = list<frugal::property::capturable>;
};

TEST_CASE("a property is that of a policy, or of its kind") {
  using namespace frugal::property;
  static_assert(has_property<capturable, OfKind> && has_property<knows_ranks, OfKind>);
  static_assert(!has_property<adapts, OfKind> && !has_property<adapts, Nothing>);
  static_assert(are_properties<list<adapts, works_on_parts>> && are_properties<list<>>);
  static_assert(!are_properties<list<adapts, int>> && !are_properties<adapts>);
}

struct OldWay {
  static constexpr bool adapts = true;
};
struct OfItsOwn {
  int adapts = 0;
};

TEST_CASE("a bool member that is called like a property is found") {
  static_assert(has_property_as_bool<OldWay>());
  static_assert(!has_property_as_bool<OfItsOwn>() && !has_property_as_bool<OfKind>());
}

TEST_CASE("declared lists are found, and undeclared ones are empty") {
  static_assert(std::is_same_v<needs_of<Some>::type, list<int>>);
  static_assert(std::is_same_v<after_of<Some>::type, list<char, long>>);
  static_assert(std::is_same_v<before_of<Some>::type, list<>>);
  static_assert(std::is_same_v<provides_of<Nothing>::type, list<>>);
}

}  // namespace frugal_test::compose_declared
