// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <frugal/core/source/described_transform.hpp>

#include <doctest/doctest.h>

#include <string>

namespace frugal_test::data_described_transform {

struct Versioned {
  static constexpr int version = 3;
  std::string text;
  std::string settings() const { return text; }
};
struct Other : Versioned {};
struct OnlyVersion {
  static constexpr int version = 1;
};

TEST_CASE("a transform is told by its type, its version and its settings") {
  using frugal::detail::transform_text;
  CHECK(transform_text(Versioned{"a"}) == transform_text(Versioned{"a"}));
  CHECK(transform_text(Versioned{"a"}) != transform_text(Versioned{"b"}));
  CHECK(transform_text(Versioned{"a"}) != transform_text(Other{{"a"}}));
  CHECK(frugal::detail::short_transform_text(Versioned{"a"}).ends_with(", version 3, a"));
}

TEST_CASE("a lambda, and a transform that says only a part, do not say what they are") {
  auto const lambda = [](int) { return 0; };
  static_assert(frugal::DescribedTransform<Versioned>);
  static_assert(!frugal::DescribedTransform<OnlyVersion>);
  static_assert(!frugal::DescribedTransform<decltype(lambda)>);
}

}  // namespace frugal_test::data_described_transform
