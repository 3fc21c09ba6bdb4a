// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <doctest/doctest.h>

#include <string_view>
#include <type_traits>

#include <frugal/core/compose/fixed_string.hpp>

namespace frugal_test::compose_fixed_string {

template <frugal::fixed_string Text>
struct Named {
  static constexpr std::string_view text = Text;
};

TEST_CASE("a literal becomes a template argument and reads back without its terminator") {
  CHECK(Named<"accuracy">::text == "accuracy");
  CHECK(Named<"">::text.empty());
}

TEST_CASE("equal texts are one type and different texts are two") {
  CHECK(std::is_same_v<Named<"loss">, Named<"loss">>);
  CHECK_FALSE(std::is_same_v<Named<"loss">, Named<"lost">>);
  CHECK_FALSE(std::is_same_v<Named<"loss">, Named<"loss ">>);
}

TEST_CASE("a text with a zero inside keeps what follows") {
  CHECK(Named<"a\0b">::text == std::string_view("a\0b", 3));
}

}  // namespace frugal_test::compose_fixed_string

namespace frugal_test::compose_alias_name {

template <int N>
struct Share {};
using Half = Share<2>;

}  // namespace frugal_test::compose_alias_name

template <>
inline constexpr std::string_view frugal::alias_name<frugal_test::compose_alias_name::Half> =
    "Half";

namespace frugal_test::compose_alias_name {

TEST_CASE("a type has the name of its alias, and others have none") {
  CHECK(frugal::alias_name<Share<2>> == "Half");
  CHECK(frugal::alias_name<Share<3>>.empty());
}

}  // namespace frugal_test::compose_alias_name
