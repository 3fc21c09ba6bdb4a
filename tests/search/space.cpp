// SPDX-License-Identifier: Apache-2.0
// torch-free
// needs: recipes
#include <frugal/search/space.hpp>

#include "core/compose/stand_ins.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <vector>

namespace frugal_test::search_space {

using namespace frugal;
using frugal_test::compose::alpha;
using frugal_test::compose::beta;
using frugal_test::compose::many;

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

struct Rate {
  using kind = alpha;
  using listens = list<>;
  double lr = 1;
};
struct Norm {
  using kind = beta;
  using listens = list<>;
  double limit = 1;
};
struct Repeated {
  using kind = many;
  using listens = list<>;
  double share = 1;
};
struct Shape {
  int width = 1, depth = 1;
};
struct Loss {
  double smoothing = 0;
};

struct FakeTrainer {
  double lr = 0;  // of no policy
  Rate rate{};
  Norm norm{};
  template <class Kind>
  auto& policy() {
    if constexpr (std::is_same_v<Kind, alpha>) {
      return rate;
    } else {
      return norm;
    }
  }
};

using Places = frugal::detail::SettingPlaces<list<Rate, Norm, Repeated>, Shape, Loss>;
std::tuple const settings{vary<&Rate::lr>(Uniform{0, 1}),         //
                          vary<&Shape::width>(Int{1, 64}),        //
                          vary<&Loss::smoothing>(Uniform{0, 1}),  //
                          vary<&Norm::limit>(Uniform{0, 1}),      //
                          vary<&Shape::depth>(Int{1, 9})};
Candidate const candidate{.values = {0.5, 32.0, 0.25, std::nullopt, 3.0}};

template <class V>
constexpr bool has(V const&) {
  return Places::has<V>();
}

TEST_CASE("a recipe has the settings of its policies, of the architecture and of the objective") {
  CHECK(has(vary<&Rate::lr>(Uniform{})));
  CHECK(has(vary<&Shape::width>(Int{})));
  CHECK(has(vary<&Loss::smoothing>(Uniform{})));
  CHECK(has(vary<&FakeTrainer::lr, &Norm::limit>(Uniform{})));
  using Fewer = frugal::detail::SettingPlaces<list<Rate>, Shape, Loss>;
  CHECK(!Fewer::has<decltype(vary<&Norm::limit>(Uniform{}))>());
  // A trainer may hold two of a repeatable kind.
  CHECK(!has(vary<&Repeated::share>(Uniform{})));
}

TEST_CASE("each value goes to its member, and a setting without a value changes nothing") {
  Shape shape;
  Loss loss;
  FakeTrainer trainer;
  Places::set(settings, candidate, shape);
  Places::set(settings, candidate, loss);
  Places::set_policies(settings, candidate, trainer);
  CHECK(shape.width == 32);
  CHECK(shape.depth == 3);
  CHECK(loss.smoothing == 0.25);
  CHECK(trainer.rate.lr == 0.5);
  CHECK(trainer.norm.limit == 1);
}

TEST_CASE("the architecture's text has its values alone") {
  CHECK(Places::architecture(settings, candidate) == "; width 32; depth 3");
}

TEST_CASE("the code names the place of each setting") {
  WinnerCode const code = Places::code(settings, "Mine");
  CHECK(code.recipe_type == "Mine");
  REQUIRE(code.settings.size() == 5);
  CHECK(code.settings[0].place.find("trainer.policy<") == 0);
  CHECK(code.settings[0].place.find("Rate::kind>()") != std::string::npos);
  CHECK(code.settings[0].member == "lr");
  CHECK(code.settings[1].place == "architecture");
  CHECK(code.settings[1].member == "width");
  CHECK(code.settings[2].place == "trainer.objective()");
  CHECK(code.settings[2].setting == "smoothing");
  CHECK(code.settings[3].member == "limit");
}

TEST_CASE("a setting of several members has a place for each") {
  auto const all = vary<&Shape::width, &Shape::depth, &Rate::lr, &Norm::limit>(Int{1, 9});
  WinnerCode const code = Places::code(std::tuple(all), "Mine");
  std::vector<std::string> members;
  for (PlacedSetting const& each : code.settings) {
    CHECK(each.setting == "width");
    members.push_back(each.member);
  }
  CHECK(members == std::vector<std::string>{"width", "depth", "lr", "limit"});
  CHECK(code.settings[1].place == "architecture");
  CHECK(code.settings[3].place.find("Norm") != std::string::npos);
}

}  // namespace frugal_test::search_space
