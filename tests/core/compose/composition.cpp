// SPDX-License-Identifier: Apache-2.0
// torch-free

#include <doctest/doctest.h>

#include <array>
#include <concepts>
#include <cstdint>
#include <type_traits>
#include <utility>

#include <frugal/core/compose/composition.hpp>

#include "stand_ins.hpp"

namespace frugal_test::compose_composition {

using namespace frugal_test::compose;
using frugal::Recipe;
using frugal::detail::assignment_to;
using frugal::detail::complete;
using frugal::detail::composed;
using frugal::detail::get;
using frugal::detail::Storage;

using NullGear = Setting<gear>;
using NullBrake = Setting<brake>;
using A = Setting<alpha>;
using M = Setting<many>;

template <class... Ps>
using completed = typename complete<list<gear, brake>, list<Ps...>>::type;

TEST_CASE("open slots are filled with their nulls, others are unchanged") {
  CHECK(std::is_same_v<completed<>, list<NullGear, NullBrake>>);
  CHECK(std::is_same_v<completed<A, Setting<brake, 1>>, list<A, Setting<brake, 1>, NullGear>>);
  CHECK(std::is_same_v<completed<NullBrake, Setting<gear, 2>>, list<NullBrake, Setting<gear, 2>>>);
}

TEST_CASE("a composition is completed and in order") {
  CHECK(std::is_same_v<composed<list<gear, brake>, list<M, A>>, list<A, NullBrake, NullGear, M>>);
}

TEST_CASE("a policy is found by its kind") {
  using Composed = composed<list<gear, brake>, list<Setting<gear, 3>, A>>;
  CHECK(frugal::detail::index_of<gear>(Composed{}) == 2);
  CHECK(std::is_same_v<frugal::detail::slot_of<gear, Composed>, Setting<gear, 3>>);
  CHECK(std::is_same_v<frugal::detail::slot_of<brake, Composed>, NullBrake>);
}

TEST_CASE("an illegal recipe is composed of nulls alone, so that its sentence is the only error") {
  using Slots = list<gear>;
  CHECK(std::is_same_v<frugal::detail::composed_if_legal<false, Slots, list<int, A>>,
                       list<NullGear>>);
  CHECK(std::is_same_v<frugal::detail::composed_if_legal<true, Slots, list<A>>, list<A, NullGear>>);
}

TEST_CASE("values go to the leaf of their type, in any order of arguments") {
  Storage<A, NullGear, M> storage;
  assignment_to(storage, list<A, NullGear, M>{}) << M{.value = 3} << A{.value = 1};
  CHECK(get<0>(storage).value == 1);
  CHECK(get<1>(storage).value == 0);
  CHECK(get<2>(storage).value == 3);
}

TEST_CASE("two values of one type go to its two leaves, in order") {
  Storage<M, A, M> storage;
  assignment_to(storage, list<M, A, M>{}) << M{.value = 1} << M{.value = 2};
  CHECK(get<0>(storage).value == 1);
  CHECK(get<2>(storage).value == 2);
}

TEST_CASE("one value of a type that has two leaves goes to the first") {
  Storage<M, M> storage;
  assignment_to(storage, list<M, M>{}) << M{.value = 1};
  CHECK(get<0>(storage).value == 1);
  CHECK(get<1>(storage).value == 0);
}

TEST_CASE("a recipe passed as a value names types and sets nothing") {
  Storage<A, M> storage;
  assignment_to(storage, list<A, M>{}) << Recipe<A>{} << M{.value = 4};
  CHECK(get<0>(storage).value == 0);
  CHECK(get<1>(storage).value == 4);
}

namespace detail = frugal::detail;

TEST_CASE("the positions of the set bits are those of the policies, in order") {
  static_assert(detail::bits_of({true, false, true}) == 0b101);
  static_assert(detail::bits_of({}) == 0);
  static_assert(std::same_as<detail::set_bits<0>, std::index_sequence<>>);
  static_assert(std::same_as<detail::set_bits<0b101100>, std::index_sequence<2, 3, 5>>);
  static_assert(
      std::same_as<detail::set_bits<~std::uint64_t{0} << 62>, std::index_sequence<62, 63>>);
}

TEST_CASE("subscribers are found by a hook's number") {
  std::array<detail::PolicyInfo, 3> infos{};
  infos[0].listens = 0b01;
  infos[2].listens = 0b11;
  CHECK(detail::subscribers_of(infos, 0) == 0b101);
  CHECK(detail::subscribers_of(infos, 1) == 0b100);
  CHECK(detail::subscribers_of(infos, 2) == 0);
}

struct Empty {};
struct OtherEmpty {};
struct Number {
  int value = 5;
};

struct Pinned {
  int value;
  explicit Pinned(Number const& from) : value(from.value + 1) {}
  Pinned(Pinned const&) = delete;
  Pinned& operator=(Pinned const&) = delete;
};
struct Ignoring {
  template <class From>
  explicit Ignoring(From const&) {}
};

template <class Inner>
struct Holds {
  int number = 0;
  [[no_unique_address]] Inner inner;
};

TEST_CASE("leaves are found by their position, two of one type separately") {
  Storage<Number, Empty, Number> storage;
  get<0>(storage).value = 1;
  get<2>(storage).value = 3;
  CHECK(get<0>(storage).value == 1);
  CHECK(get<2>(storage).value == 3);
  auto const& constant = storage;
  CHECK(get<2>(constant).value == 3);
}

TEST_CASE("a storage begins with its types' own defaults") {
  Storage<Number, int> storage;
  CHECK(get<0>(storage).value == 5);
  CHECK(get<1>(storage) == 0);
}

TEST_CASE("empty leaves take no space") {
  CHECK(sizeof(Storage<Number, Empty, OtherEmpty>) == sizeof(Number));
  CHECK(std::is_empty_v<Storage<>>);
  CHECK(std::is_empty_v<Storage<Empty, OtherEmpty>>);
  CHECK(sizeof(Holds<Storage<Empty, OtherEmpty>>) == sizeof(int));
}

TEST_CASE("leaves are made in place from another storage: they need not be movable") {
  Storage<Number, Number> numbers;
  get<0>(numbers).value = 10;
  get<1>(numbers).value = 20;
  Storage<Pinned, Ignoring> pinned(std::in_place, numbers);
  CHECK(get<0>(pinned).value == 11);
  CHECK_FALSE(std::is_move_constructible_v<decltype(pinned)>);
}

template <int N>
struct Numbered : frugal::slot_kind {
  static constexpr char letter[] = {static_cast<char>('a' + N)};
  static constexpr std::string_view name{letter, 1};
};
template <int... Ns>
using NullEngine = Engine<Context<>, Setting<Numbered<Ns>>...>;

TEST_CASE("the engine of an empty recipe is an empty class and adds no byte, however many slots") {
  using Twelve = NullEngine<0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11>;
  CHECK(std::is_empty_v<Engine<Context<>>>);
  CHECK(std::is_empty_v<Twelve>);
  CHECK(sizeof(Holds<Engine<Context<>>>) == sizeof(int));
  CHECK(sizeof(Twelve) == 1);
}

template <class E>
struct HoldsEngine {
  int number = 0;
  [[no_unique_address]] E engine;
};
TEST_CASE("twelve null slots do not enlarge a struct") {
  struct Bare {
    int number;
  };
  using Twelve = NullEngine<0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11>;
  CHECK(sizeof(HoldsEngine<Twelve>) == sizeof(Bare));
}

TEST_CASE("states without data share addresses; only what has data has size") {
  using Mixed = Engine<Context<>, Teller<alpha>, Teller<beta>, Teller<gamma>, Setting<Numbered<0>>>;
  CHECK(std::is_empty_v<Mixed>);
  CHECK(sizeof(Mixed) == 1);
}

}  // namespace frugal_test::compose_composition
