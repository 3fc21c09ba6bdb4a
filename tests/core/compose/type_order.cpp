// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <doctest/doctest.h>

#include <frugal/core/compose/fixed_string.hpp>
#include <frugal/core/compose/rational.hpp>
#include <frugal/core/compose/type_order.hpp>

namespace frugal_test::compose_type_order {

struct Apple {};
struct Pear {};
enum class Side { left, right };

template <class... Ts>
struct Basket {};
template <auto... Vs>
struct Numbers {};
template <class T = Apple>
struct Box {};

template <class T, class U>
constexpr bool before =
    frugal::detail::TypeOrder<T, U>::value() < 0 && frugal::detail::TypeOrder<U, T>::value() > 0;
template <class T>
constexpr bool equal_to_itself = frugal::detail::TypeOrder<T, T>::value() == 0;

TEST_CASE("types are ordered by name, and a type is equal to itself") {
  CHECK(before<Apple, Pear>);
  CHECK(before<Basket<Pear>, Numbers<1>>);
  CHECK(equal_to_itself<Apple>);
  CHECK(equal_to_itself<Basket<Apple, Box<>>>);
  CHECK(equal_to_itself<Numbers<1, 2>>);
}

TEST_CASE("types of one template are ordered by their arguments, the shorter list first") {
  CHECK(before<Basket<>, Basket<Apple>>);
  CHECK(before<Basket<Apple>, Basket<Pear>>);
  CHECK(before<Basket<Apple, Pear>, Basket<Pear>>);
  CHECK(before<Basket<Basket<Apple>>, Basket<Basket<Pear>>>);
}

TEST_CASE("numbers are ordered by size, not by their digits") {
  CHECK(before<Numbers<4>, Numbers<16>>);
  CHECK(before<Numbers<-2>, Numbers<1>>);
  CHECK(before<Numbers<0.25>, Numbers<0.5>>);
  CHECK(before<Numbers<Side::left>, Numbers<Side::right>>);
}

TEST_CASE("a default argument counts as if it was written") { CHECK(before<Box<>, Box<Pear>>); }

TEST_CASE("texts are ordered by their characters, whatever their lengths") {
  CHECK(before<Numbers<frugal::fixed_string("accuracy")>, Numbers<frugal::fixed_string("loss")>>);
  CHECK(before<Numbers<frugal::fixed_string("auc")>, Numbers<frugal::fixed_string("loss")>>);
}

}  // namespace frugal_test::compose_type_order
