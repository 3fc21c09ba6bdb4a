// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <doctest/doctest.h>

#include <frugal/core/compose/scope.hpp>

#include "stand_ins.hpp"

#include <string>
#include <vector>

namespace frugal_test::compose_scope {

using namespace frugal_test::compose;
using frugal::detail::infos_of;

TEST_CASE("a scope is named after its kind, and a second one of a kind is numbered") {
  auto const& infos =
      infos_of<Setting<many, 1>, Setting<alpha>, Setting<many, 2>, Setting<many, 3>>;
  CHECK(frugal::detail::scope_of(infos, 0) == "Many");
  CHECK(frugal::detail::scope_of(infos, 1) == "Alpha");
  CHECK(frugal::detail::scope_of(infos, 2) == "Many.1");
  CHECK(frugal::detail::scope_of(infos, 3) == "Many.2");
}

TEST_CASE("first_scopes returns the first of an order, and no more than there are") {
  auto const& infos = infos_of<Setting<alpha>, Setting<beta>>;
  CHECK(frugal::detail::first_scopes(infos, 0).empty());
  CHECK(frugal::detail::first_scopes(infos, 1) == std::vector<std::string>{"Alpha"});
  CHECK(frugal::detail::first_scopes(infos, 9) == std::vector<std::string>{"Alpha", "Beta"});
  CHECK(frugal::detail::is_among({"Alpha", "Beta"}, "Beta"));
  CHECK_FALSE(frugal::detail::is_among({"Alpha"}, "Alph"));
}

}  // namespace frugal_test::compose_scope
