// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <doctest/doctest.h>

#include <frugal/core/compose/storage.hpp>

#include "stand_ins.hpp"

#include <type_traits>

namespace frugal_test::compose_storage {

using namespace frugal_test::compose;
using frugal::detail::get;
using frugal::detail::Storage;

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

}  // namespace frugal_test::compose_storage
