// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <doctest/doctest.h>

#include <frugal/core/compose/options.hpp>

#include <concepts>

namespace frugal_test::compose_options {

using namespace frugal::detail;
using frugal::list;

template <int N>
struct Count {
  static constexpr int count = N;
};
struct Flag {};

struct a_count {
  template <class O>
  static constexpr bool has = requires { O::count; };
};
struct a_flag {
  template <class O>
  static constexpr bool has = std::same_as<O, Flag>;
};
using classes = list<a_count, a_flag>;

template <class... Options>
constexpr int count_in = option_of<a_count, Count<7>, Options...>::count;

TEST_CASE("an option is found in any position, and its default without it") {
  CHECK(count_in<Count<3>, Flag> == 3);
  CHECK(count_in<Flag, Count<3>> == 3);
  CHECK(count_in<Flag> == 7);
  CHECK(count_in<> == 7);
}

TEST_CASE("of two options of a class the first is used, and all are listed in their order") {
  CHECK(count_in<Count<3>, Count<4>> == 3);
  CHECK(std::same_as<options_of<a_count, Count<3>, Flag, Count<4>>, list<Count<3>, Count<4>>>);
  CHECK(std::same_as<options_of<a_flag, Count<3>>, list<>>);
}

TEST_CASE("options are known if each is of one of the classes") {
  CHECK(options_known<classes>);
  CHECK(options_known<classes, Flag, Count<1>>);
  CHECK_FALSE(options_known<classes, Flag, int>);
  CHECK_FALSE(options_known<list<>, Flag>);
}

TEST_CASE("options are unique if each class has at most one") {
  CHECK(options_unique<classes>);
  CHECK(options_unique<classes, Flag, Count<1>>);
  CHECK_FALSE(options_unique<classes, Count<1>, Flag, Count<2>>);
  CHECK(options_unique<list<a_flag>, Count<1>, Flag, Count<2>>);  // other classes may repeat
}

template <class... Options>
struct Ordered {
  using canonical = Ordered<option_of<a_count, Count<7>, Options...>>;
};

TEST_CASE(
    "policies with the same options in another order, or by default, have one canonical type") {
  using One = canonical_of<Ordered<Flag, Count<7>>>::type;
  CHECK(std::same_as<One, canonical_of<Ordered<>>::type>);
  CHECK_FALSE(std::same_as<One, canonical_of<Ordered<Count<8>>>::type>);
  CHECK(std::same_as<canonical_of<Flag>::type, Flag>);
}

}  // namespace frugal_test::compose_options
