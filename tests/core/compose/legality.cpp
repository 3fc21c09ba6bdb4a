// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <string>
#include <type_traits>
#include <utility>

#include <frugal/core/compose/legality.hpp>
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

using frugal::Stage;
using frugal::detail::Edge;
using frugal::detail::Order;
using frugal::detail::order_of;
using frugal::detail::PolicyInfo;

constexpr PolicyInfo info(std::string_view kind, std::span<Edge const> before = {},
                          std::span<Edge const> after = {}) {
  return {kind, false, true, Stage::measure, false, 0, {}, {}, before, after};
}
constexpr Edge edge_to(std::string_view kind) { return {kind, false, {}}; }

template <std::size_t N>
std::string text(std::array<PolicyInfo, N> const& infos) {
  Order<N> const order = order_of(infos);
  std::string names;
  for (std::size_t i = 0; i < order.sorted; ++i) names += infos[order.position[i]].kind;
  return names;
}

constexpr std::array after_a{edge_to("a")};
constexpr std::array after_b{edge_to("b")};
constexpr std::array after_c{edge_to("c")};
constexpr std::array before_a{edge_to("a")};
constexpr std::array before_b_and_c{edge_to("b"), edge_to("c")};

TEST_CASE("without edges kinds are ordered alphabetically") {
  CHECK(text(std::array{info("c"), info("a"), info("b")}) == "abc");
}

TEST_CASE("a stage comes after all earlier ones, whatever the alphabet") {
  auto const staged = [](std::string_view kind, Stage stage) {
    PolicyInfo one = info(kind);
    one.stage = stage;
    return one;
  };
  CHECK(text(std::array{staged("a", Stage::save), staged("b", Stage::update),
                        staged("c", Stage::publish)}) == "bca");
}

TEST_CASE("an edge moves a policy out of its stage, and those of its stage stay") {
  auto const staged = [](std::string_view kind, Stage stage, std::span<Edge const> after = {}) {
    PolicyInfo one = info(kind, {}, after);
    one.stage = stage;
    return one;
  };
  CHECK(text(std::array{staged("a", Stage::measure, after_c), staged("b", Stage::measure),
                        staged("c", Stage::decide), staged("d", Stage::decide)}) == "bcad");
}

TEST_CASE("before moves a policy ahead of its stage, and not the other one back") {
  auto const staged = [](std::string_view kind, Stage stage, std::span<Edge const> before = {}) {
    PolicyInfo one = info(kind, before);
    one.stage = stage;
    return one;
  };
  // "z" is before "a" in the stage of "a", and "y" before "z" by way of it.
  constexpr std::array before_z{edge_to("z")};
  CHECK(text(std::array{staged("a", Stage::update), staged("b", Stage::update),
                        staged("m", Stage::measure), staged("z", Stage::save, before_a),
                        staged("y", Stage::leave, before_z)}) == "byzam");
}

TEST_CASE("after and before move a policy past the alphabetical order") {
  CHECK(text(std::array{info("b", {}, after_c), info("c"), info("a")}) == "acb");
  CHECK(text(std::array{info("a"), info("b"), info("z", before_a)}) == "bza");
  CHECK(text(std::array{info("b"), info("c"), info("z", before_b_and_c)}) == "zbc");
}

TEST_CASE("an edge to an absent kind has no effect") {
  CHECK(text(std::array{info("b"), info("a", {}, after_c)}) == "ab");
}

TEST_CASE("an edge holds transitively") {
  CHECK(text(std::array{info("a", {}, after_b), info("b", {}, after_c), info("c")}) == "cba");
}

TEST_CASE("an edge declared by both sides is one edge") {
  CHECK(text(std::array{info("b", before_a), info("a", {}, after_b)}) == "ba");
}

TEST_CASE("policies of one kind keep the order in which they were written") {
  std::array const infos{info("m"), info("a"), info("m"), info("m")};
  Order<4> const order = order_of(infos);
  CHECK(order.sorted == 4);
  CHECK(order.position == std::array<std::size_t, 4>{1, 0, 2, 3});
}

TEST_CASE("a cycle and everything that waits for it are not sorted, and the rest is") {
  std::array const infos{info("d", {}, after_a), info("a", {}, after_b), info("b", {}, after_a),
                         info("e")};
  Order<4> const order = order_of(infos);
  CHECK(order.sorted == 1);
  CHECK(order.position == std::array<std::size_t, 4>{3, 0, 1, 2});
}

TEST_CASE("contradicting declarations of two policies are a cycle of two") {
  CHECK(order_of(std::array{info("a", before_b_and_c), info("b", before_a)}).sorted == 0);
}

TEST_CASE("a kind that wants to come after itself waits for nothing when it is alone") {
  CHECK(order_of(std::array{info("a", {}, after_a)}).sorted == 1);
  CHECK(order_of(std::array{info("a", {}, after_a), info("a", {}, after_a)}).sorted == 0);
}

TEST_CASE("all orders of 6 infos with edges give one sequence of kinds") {
  constexpr std::array after_f{edge_to("f")};
  constexpr std::array before_d{edge_to("d")};
  std::array infos{info("a", {}, after_f), info("b"),
                   info("c", {}, after_b), info("d"),
                   info("e", before_d),    info("f", before_b_and_c)};
  auto const by_kind = [](PolicyInfo const& x, PolicyInfo const& y) { return x.kind < y.kind; };
  std::string const first = text(infos);
  CHECK(first == "edfabc");
  int different = 0;
  std::sort(infos.begin(), infos.end(), by_kind);
  do {
    different += text(infos) != first;
  } while (std::next_permutation(infos.begin(), infos.end(), by_kind));
  CHECK(different == 0);
}

// The same with types, as in a trainer.
template <class Kind, class Before, class After>
struct CopiedAhead {
  using kind = Kind;
  using listens = list<frugal::on::step>;
  using before = Before;
  using after = After;
  template <class>
  struct State {
    explicit State(CopiedAhead const&) {}
    void on_step(Notes& notes) { notes.lines.emplace_back(Kind::name); }
  };
};
using P0 = CopiedAhead<alpha, list<>, list<gamma>>;
using P1 = CopiedAhead<beta, list<>, list<>>;
using P2 = CopiedAhead<gamma, list<>, list<beta>>;
using P3 = CopiedAhead<delta, list<beta>, list<>>;
using P4 = CopiedAhead<epsilon, list<alpha>, list<gamma>>;
using All = list<P0, P1, P2, P3, P4>;

using slots = list<gear>;
using Expected = list<P3, P1, P2, P4, P0, Setting<gear>>;

// The i-th of 120 permutations, from its factorial digits.
constexpr std::array<std::size_t, 5> permutation(std::size_t which) {
  std::array<std::size_t, 5> order{0, 1, 2, 3, 4};
  for (std::size_t i = 0; i < 5; ++i) {
    std::size_t const rest = 5 - i;
    std::size_t const pick = i + which % rest;
    which /= rest;
    std::size_t const chosen = order[pick];
    for (std::size_t j = pick; j > i; --j) order[j] = order[j - 1];
    order[i] = chosen;
  }
  return order;
}
template <std::size_t Which, std::size_t... Is>
auto permuted(std::index_sequence<Is...>) -> list<frugal::type_at<All, permutation(Which)[Is]>...>;
template <std::size_t Which>
using permuted_list = decltype(permuted<Which>(std::make_index_sequence<5>{}));

template <std::size_t... Which>
constexpr bool all_agree(std::index_sequence<Which...>) {
  return (std::is_same_v<frugal::detail::composed<slots, permuted_list<Which>>,
                         frugal::detail::composed<slots, All>> &&
          ...);
}
template <std::size_t... Which>
constexpr bool all_engines_agree(std::index_sequence<Which...>) {
  return (std::is_same_v<
              typename engine_of<frugal::detail::composed<slots, permuted_list<Which>>>::type,
              typename engine_of<frugal::detail::composed<slots, All>>::type> &&
          ...);
}

TEST_CASE("all 120 permutations of five policies are one composition and one engine type") {
  CHECK_FALSE(std::is_same_v<permuted_list<0>, permuted_list<119>>);
  CHECK(all_agree(std::make_index_sequence<120>{}));
  CHECK(all_engines_agree(std::make_index_sequence<120>{}));
}

TEST_CASE("that composition follows the declarations, with ties broken by name") {
  CHECK(std::is_same_v<frugal::detail::composed<slots, All>, Expected>);
}

TEST_CASE("repeatable policies keep their written order between the others") {
  using one = frugal::detail::composed<list<>, list<Teller<many, 2>, P1, Teller<many, 1>>>;
  using two = frugal::detail::composed<list<>, list<Teller<many, 1>, Teller<many, 2>, P1>>;
  CHECK(std::is_same_v<one, list<P1, Teller<many, 2>, Teller<many, 1>>>);
  CHECK(std::is_same_v<two, list<P1, Teller<many, 1>, Teller<many, 2>>>);
}

}  // namespace frugal_test::compose_legality
