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

TEST_CASE("declared lists are found, and undeclared ones are empty") {
  static_assert(std::is_same_v<needs_of<Some>::type, list<int>>);
  static_assert(std::is_same_v<after_of<Some>::type, list<char, long>>);
  static_assert(std::is_same_v<before_of<Some>::type, list<>>);
  static_assert(std::is_same_v<provides_of<Nothing>::type, list<>>);
}

}  // namespace frugal_test::compose_declared
