// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <doctest/doctest.h>

#include <frugal/core/compose/alias_name.hpp>

#include <string_view>

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
