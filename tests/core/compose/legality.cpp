// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <doctest/doctest.h>

#include <frugal/core/compose/recipe.hpp>

#include "stand_ins.hpp"

namespace frugal_test::compose_legality {

using namespace frugal_test::compose;
using frugal::Recipe;
namespace rules = frugal::rules;

FRUGAL_DIAGNOSTIC(own_need, "frugal: this one needs a beta.");
FRUGAL_DIAGNOSTIC(own_conflict, "frugal: this one bears no beta.");

template <class Kind, class Needs, class Conflicts = list<>, class After = list<>>
struct Picky {
  using kind = Kind;
  using listens = list<>;
  using needs = Needs;
  using conflicts = Conflicts;
  using after = After;
};

template <class... Ps>
constexpr std::string_view fault = Recipe<Ps...>::fault;

TEST_CASE("an empty recipe is legal") {
  CHECK(Recipe<>::legal);
  CHECK(fault<>.empty());
}

TEST_CASE("a need is met by any policy of the kind, before or after it in the recipe") {
  using Needy = Picky<alpha, list<beta>>;
  CHECK(fault<Needy> == rules::missing_need::text);
  CHECK(fault<Needy, Setting<gamma>> == rules::missing_need::text);
  CHECK(Recipe<Needy, Setting<beta>>::legal);
  CHECK(Recipe<Setting<beta, 7>, Needy>::legal);
}

TEST_CASE("every one of several needs must be met") {
  using Needy = Picky<alpha, list<beta, frugal::need<gamma, own_need>>>;
  CHECK(fault<Needy, Setting<gamma>> == rules::missing_need::text);
  CHECK(fault<Needy, Setting<beta>> == own_need::text);
  CHECK(Recipe<Needy, Setting<beta>, Setting<gamma>>::legal);
}

TEST_CASE("a need of a slot is always met, since its default fills it") {
  CHECK(Recipe<Picky<alpha, list<gear>>>::legal);
}

TEST_CASE("a need is refused in its own sentence") {
  CHECK(fault<Picky<alpha, list<frugal::need<beta, own_need>>>> == own_need::text);
}

TEST_CASE("a conflict holds in both directions, whichever policy declares it") {
  using Shy = Picky<alpha, list<>, list<beta>>;
  CHECK(fault<Shy, Setting<beta>> == rules::conflicting::text);
  CHECK(fault<Setting<beta>, Shy> == rules::conflicting::text);
  CHECK(Recipe<Shy, Setting<gamma>>::legal);
  using Mutual = Picky<beta, list<>, list<alpha>>;
  CHECK(fault<Mutual, Setting<alpha>> == rules::conflicting::text);
}

TEST_CASE("a conflict is refused in its own sentence") {
  using Shy = Picky<alpha, list<>, list<frugal::conflict<beta, own_conflict>>>;
  CHECK(fault<Shy, Setting<beta>> == own_conflict::text);
}

TEST_CASE("nothing conflicts with a null, written out or not") {
  using Shy = Picky<alpha, list<>, list<gear>>;
  CHECK(Recipe<Shy>::legal);
  CHECK(Recipe<Shy, Setting<gear>>::legal);
  CHECK(fault<Shy, Setting<gear, 1>> == rules::conflicting::text);
}

TEST_CASE("two policies of a kind are one too many unless it is repeatable") {
  CHECK(fault<Setting<alpha>, Setting<alpha, 1>> == rules::duplicate::text);
  CHECK(fault<Setting<alpha>, Setting<alpha>> == rules::duplicate::text);
  CHECK(fault<Setting<gear, 1>, Setting<gear>> == rules::duplicate::text);
  CHECK(Recipe<Setting<many>, Setting<many, 1>, Setting<many>>::legal);
}

TEST_CASE("a cycle of before and after is a fault of the recipe that contains all of it") {
  using First = Picky<alpha, list<>, list<>, list<beta>>;
  using Second = Picky<beta, list<>, list<>, list<gamma>>;
  using Third = Picky<gamma, list<>, list<>, list<alpha>>;
  CHECK(Recipe<First, Second>::legal);
  CHECK(fault<First, Second, Third> == rules::cycle::text);
  CHECK(fault<Third, Setting<delta>, First, Second> == rules::cycle::text);
}

TEST_CASE("a type that is not a policy is the fault that is named, whatever else is wrong") {
  CHECK(fault<int> == rules::not_a_policy::text);
  CHECK(fault<Setting<alpha>, Setting<alpha>, int> == rules::not_a_policy::text);
}

TEST_CASE("of several faults the first policy's is named") {
  using Needy = Picky<alpha, list<frugal::need<beta, own_need>>>;
  CHECK(fault<Needy, Setting<gamma>, Setting<gamma>> == own_need::text);
  CHECK(fault<Setting<gamma>, Setting<gamma>, Needy> == rules::duplicate::text);
}

TEST_CASE("a legal recipe has no fault") {
  using Facts = frugal::detail::RecipeCheck<list<Setting<alpha>, Setting<gear>>>;
  CHECK(Facts::require());
}

FRUGAL_DIAGNOSTIC(own_demand, "frugal: this one wants values below 5.");

struct Below5 {
  using sentence = own_demand;
  template <class P>
  static constexpr bool met = P{}.value < 5;
};
/// A demand on every policy, including kinds that it does not know.
struct Demanding : Setting<alpha> {
  using demands = list<Below5>;
};

TEST_CASE("a demand applies to every policy of the recipe, before or after it") {
  CHECK(Recipe<Demanding>::legal);
  CHECK(Recipe<Demanding, Setting<beta, 4>, Setting<gamma>>::legal);
  CHECK(fault<Demanding, Setting<beta, 5>> == own_demand::text);
  CHECK(fault<Setting<gamma>, Setting<beta, 5>, Demanding> == own_demand::text);
  CHECK(Recipe<Setting<gamma>, Setting<beta, 5>>::legal);
}

TEST_CASE("a policy that does not belong in the recipe is reported before unmet demands") {
  CHECK(fault<Demanding, Setting<beta, 5>, Setting<beta>> == rules::duplicate::text);
}

}  // namespace frugal_test::compose_legality
