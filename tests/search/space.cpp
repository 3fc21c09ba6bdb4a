// SPDX-License-Identifier: Apache-2.0
// torch-free
// needs: recipes
#include <doctest/doctest.h>

#include <frugal/search/space.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace frugal_test::search_space {

using namespace frugal;

struct Base {
  double rate = 1;
};
struct Derived : Base {
  std::optional<int> width{};
  std::string activation = "relu";
  bool norm = false;
  std::uint8_t small = 0;
};
struct Other {
  float momentum = 0;
};

TEST_CASE("a setting is named by its member or as given") {
  CHECK(vary<&Base::rate>(Uniform{0, 1}).name == "rate");
  CHECK(vary<&Derived::width>(Int{1, 4}).name == "width");
  CHECK(vary<&Base::rate, &Other::momentum>(Uniform{0, 1}).name == "rate");
  CHECK(vary<&Base::rate>("mine", Uniform{0, 1}).name == "mine");
}

TEST_CASE("a setting sets the members that an object has, also of its base, and no others") {
  auto const both = vary<&Base::rate, &Other::momentum>(Uniform{0, 1});
  static_assert(decltype(both)::is_in<Base> && decltype(both)::is_in<Derived> &&
                decltype(both)::is_in<Other> && !decltype(both)::is_in<int>);
  Derived derived;
  Other other;
  int neither = 3;
  both.set(derived, 0.25);
  both.set(other, 0.5);
  both.set(neither, 0.75);
  CHECK(derived.rate == 0.25);
  CHECK(other.momentum == 0.5F);
  CHECK(neither == 3);
  CHECK(decltype(both)::members_of<Derived>() == std::vector<std::string>{"rate"});
  CHECK(decltype(both)::members_of<Other>() == std::vector<std::string>{"momentum"});
  CHECK(decltype(both)::members_of<int>().empty());
}

TEST_CASE("a setting sets all of its members in one object") {
  auto const both = vary<&Derived::width, &Derived::small>(Int{1, 64});
  Derived derived;
  both.set(derived, 12);
  CHECK(derived.width == 12);
  CHECK(derived.small == 12);
  CHECK(decltype(both)::members_of<Derived>() == std::vector<std::string>{"width", "small"});
}

TEST_CASE("numbers, bools, names and optional numbers are set by their values") {
  Derived shape;
  vary<&Derived::width>(Int{1, 64}).set(shape, 48);
  vary<&Derived::activation>(Choice{{"relu", "gelu"}}).set(shape, 1);
  vary<&Derived::norm>(Int{0, 1}).set(shape, 1);
  vary<&Derived::small>(Int{0, 255}).set(shape, 200);
  CHECK(shape.width == 48);
  CHECK(shape.activation == "gelu");
  CHECK(shape.norm);
  CHECK(shape.small == 200);
}

TEST_CASE("values that a member cannot hold are one clear error") {
  auto const refused = [](auto const& setting, char const* why) {
    CHECK_THROWS_WITH_AS(setting.require(), doctest::Contains(why), SettingsError);
  };
  refused(vary<&Derived::width>(Uniform{0, 1}), "the member is a whole number");
  refused(vary<&Derived::width>(Choice{{"a"}}), "the member is a number, and a Choice has names");
  refused(vary<&Derived::activation>(Int{0, 1}), "the member is a text");
  refused(vary<&Derived::norm>(Int{0, 2}), "the member is a bool");
  refused(vary<&Derived::norm>(Uniform{0, 1}), "the member is a bool");
  refused(vary<&Derived::small>(Int{0, 256}), "cannot hold all of the values");
  refused(vary<&Derived::small>(Int{-1, 5}), "cannot hold all of the values");
  refused(vary<&Base::rate>(Uniform{2, 1}), "its range is 2");
  refused(vary<&Base::rate>(LogUniform{0, 1}), "its range is 0");
  // Of two members both must hold them.
  refused(vary<&Base::rate, &Derived::small>(Uniform{0, 1}), "the member is a whole number");
  CHECK_NOTHROW(vary<&Base::rate>(Int{0, 256}).require());
  CHECK_NOTHROW(vary<&Derived::small>(Int{0, 255}).require());
}

}  // namespace frugal_test::search_space
