// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <doctest/doctest.h>

#include <frugal/core/compose/outcome.hpp>

#include <string>
#include <type_traits>

namespace frugal_test::compose_outcome {

/// A policy's value, reduced to what this test needs.
struct Value {
  double setting = 1;
  frugal::Outcome<std::string> outcome{};
};

TEST_CASE("a constant value receives an outcome, which the next one replaces or removes") {
  Value const value{.setting = 2};
  CHECK(value.outcome.get() == nullptr);
  value.outcome.set("first");
  value.outcome.set("second");
  REQUIRE(value.outcome.get() != nullptr);
  CHECK(*value.outcome.get() == "second");
  value.outcome.clear();
  CHECK(value.outcome.get() == nullptr);
}

TEST_CASE("a copy shares the present outcome, and not later ones") {
  Value const value;
  value.outcome.set("of both");
  Value const copy = value;
  value.outcome.set("of one");
  CHECK(*copy.outcome.get() == "of both");
  copy.outcome.clear();
  CHECK(*value.outcome.get() == "of one");
}

TEST_CASE("a value with an outcome keeps designated initialisers, and can be a policy's member") {
  static_assert(std::is_aggregate_v<Value>);
  static_assert(std::is_copy_assignable_v<Value>);
  static_assert(std::is_default_constructible_v<Value>);
}

}  // namespace frugal_test::compose_outcome
