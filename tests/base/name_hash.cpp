// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <doctest/doctest.h>

#include <frugal/base/name_hash.hpp>

namespace frugal_test::base_name_hash {

// The test vectors of the algorithm's authors, http://www.isthe.com/chongo/src/fnv/test_fnv.c.
TEST_CASE("a name's hash is FNV-1a") {
  static_assert(frugal::detail::name_hash("") == 0xcbf29ce484222325U);
  CHECK(frugal::detail::name_hash("a") == 0xaf63dc4c8601ec8cU);
  CHECK(frugal::detail::name_hash("foobar") == 0x85944171f73967e8U);
}

}  // namespace frugal_test::base_name_hash
