// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <doctest/doctest.h>

#include <frugal/core/compose/kind.hpp>

#include "stand_ins.hpp"

namespace frugal_test::compose_kind {

using frugal::Kind;

struct Nameless : frugal::slot_kind {};
struct Natureless {
  static constexpr std::string_view name = "Natureless";
};
struct Numbered : frugal::optional_kind {
  static constexpr int name = 3;
};

TEST_CASE("a kind has a name and a nature") {
  CHECK(Kind<compose::alpha>);
  CHECK(Kind<compose::many>);
  CHECK(Kind<compose::gear>);
  CHECK_FALSE(Kind<Nameless>);
  CHECK_FALSE(Kind<Natureless>);
  CHECK_FALSE(Kind<Numbered>);
  CHECK_FALSE(Kind<int>);
}

TEST_CASE("only slots are always filled and only repeatable kinds may occur twice") {
  CHECK(compose::gear::slot);
  CHECK_FALSE(compose::gear::repeatable);
  CHECK_FALSE(compose::alpha::slot);
  CHECK_FALSE(compose::alpha::repeatable);
  CHECK_FALSE(compose::many::slot);
  CHECK(compose::many::repeatable);
}

}  // namespace frugal_test::compose_kind
