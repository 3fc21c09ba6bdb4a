// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <doctest/doctest.h>

#include <frugal/compose/outcome.hpp>

#include <string>
#include <type_traits>

namespace frugal_test::compose_outcome {

/// A policy's value, reduced to what this test needs.
struct Value {
  double setting = 1;
  frugal::Outcome<std::string> left{};
};

TEST_CASE("a constant value receives an outcome, which the next one replaces or removes") {
  Value const value{.setting = 2};
  CHECK(value.left.get() == nullptr);
  value.left.leave("first");
  value.left.leave("second");
  REQUIRE(value.left.get() != nullptr);
  CHECK(*value.left.get() == "second");
  value.left.forget();
  CHECK(value.left.get() == nullptr);
}

TEST_CASE("a copy shares the present outcome, and not later ones") {
  Value const value;
  value.left.leave("of both");
  Value const copy = value;
  value.left.leave("of one");
  CHECK(*copy.left.get() == "of both");
  copy.left.forget();
  CHECK(*value.left.get() == "of one");
}

TEST_CASE("a value with an outcome keeps designated initialisers, and can be a policy's member") {
  static_assert(std::is_aggregate_v<Value>);
  static_assert(std::is_copy_assignable_v<Value>);
  static_assert(std::is_default_constructible_v<Value>);
}

}  // namespace frugal_test::compose_outcome
