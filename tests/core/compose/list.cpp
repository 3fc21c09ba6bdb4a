// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <doctest/doctest.h>

#include <frugal/core/compose/list.hpp>

#include <type_traits>

namespace frugal_test::compose_list {

using frugal::concat;
using frugal::contains;
using frugal::list;
using frugal::type_at;

TEST_CASE("a list knows how many types it has") {
  CHECK(list<>::size == 0);
  CHECK(list<int, int, char>::size == 3);
}

TEST_CASE("a list contains exactly the types it was written with") {
  CHECK(contains<int, list<char, int>>);
  CHECK_FALSE(contains<int const, list<char, int>>);
  CHECK_FALSE(contains<unsigned, list<char, int>>);
  CHECK_FALSE(contains<int, list<>>);
}

TEST_CASE("concat keeps order and repetitions, whatever the number of lists") {
  CHECK(std::is_same_v<concat<>, list<>>);
  CHECK(std::is_same_v<concat<list<int>>, list<int>>);
  CHECK(std::is_same_v<concat<list<int>, list<>, list<char, int>, list<>, list<int>>,
                       list<int, char, int, int>>);
}

TEST_CASE("type_at finds every position, also of a type that occurs twice") {
  using three = list<int, char, int>;
  CHECK(std::is_same_v<type_at<three, 0>, int>);
  CHECK(std::is_same_v<type_at<three, 1>, char>);
  CHECK(std::is_same_v<type_at<three, 2>, int>);
}

struct Incomplete;
TEST_CASE("type_at needs no complete types: incomplete ones, references and void have positions") {
  using odd = list<Incomplete, void, int&, int[3]>;
  CHECK(std::is_same_v<type_at<odd, 0>, Incomplete>);
  CHECK(std::is_same_v<type_at<odd, 1>, void>);
  CHECK(std::is_same_v<type_at<odd, 2>, int&>);
  CHECK(std::is_same_v<type_at<odd, 3>, int[3]>);
}

}  // namespace frugal_test::compose_list
