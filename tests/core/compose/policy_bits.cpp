// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <array>
#include <concepts>
#include <cstdint>
#include <utility>

#include <frugal/core/compose/policy_bits.hpp>

namespace frugal_test::core_compose_policy_bits {

namespace detail = frugal::detail;

TEST_CASE("the positions of the set bits are those of the policies, in order") {
  static_assert(detail::bits_of({true, false, true}) == 0b101);
  static_assert(detail::bits_of({}) == 0);
  static_assert(std::same_as<detail::set_bits<0>, std::index_sequence<>>);
  static_assert(std::same_as<detail::set_bits<0b101100>, std::index_sequence<2, 3, 5>>);
  static_assert(
      std::same_as<detail::set_bits<~std::uint64_t{0} << 62>, std::index_sequence<62, 63>>);
}

TEST_CASE("subscribers are found by a hook's number") {
  std::array<detail::PolicyInfo, 3> infos{};
  infos[0].listens = 0b01;
  infos[2].listens = 0b11;
  CHECK(detail::subscribers_of(infos, 0) == 0b101);
  CHECK(detail::subscribers_of(infos, 1) == 0b100);
  CHECK(detail::subscribers_of(infos, 2) == 0);
}

}  // namespace frugal_test::core_compose_policy_bits
