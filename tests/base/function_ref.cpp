// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <memory>
#include <type_traits>
#include <utility>

#include <frugal/base/function_ref.hpp>

namespace frugal_test::base_function_ref {

using frugal::FunctionRef;

int apply(FunctionRef<int(int)> f) { return f(20); }

TEST_CASE("it calls what it refers to, without a copy of it") {
  int calls = 0;
  auto const counts = [&calls](int value) { return value + ++calls; };
  CHECK(apply(counts) == 21);
  CHECK(apply(counts) == 22);
  auto const owns = [held = std::make_unique<int>(2)](int value) { return value * *held; };
  CHECK(apply(owns) == 40);
  auto changes = [sum = 0](int value) mutable { return sum += value; };
  CHECK(apply(changes) == 20);
  CHECK(apply(changes) == 40);
}

TEST_CASE("arguments are passed on as they are") {
  auto const takes = [](std::unique_ptr<int> value, int& into) { into = *value; };
  int into = 0;
  FunctionRef<void(std::unique_ptr<int>, int&)> const f = takes;
  f(std::make_unique<int>(7), into);
  CHECK(into == 7);
}

TEST_CASE("what cannot be called so is refused where it is passed") {
  static_assert(!std::is_constructible_v<FunctionRef<int(int)>, int (*)(char*)>);
  static_assert(std::is_constructible_v<FunctionRef<long(int)>, int (*)(int)>);
}

}  // namespace frugal_test::base_function_ref
