// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <cstddef>
#include <utility>

namespace frugal::detail {

// [[no_unique_address]] lets an empty policy share its neighbours' address; the index distinguishes
// two leaves of one type.
template <std::size_t I, class T>
struct Leaf {
  [[no_unique_address]] T value{};

  Leaf() = default;
  template <class From>
  explicit Leaf(std::in_place_t, From const& from) : value(from) {}
  /// The second one for what asks for it.
  template <class From, class Also>
  Leaf(std::in_place_t, From const& from, Also const&) : value(from) {}
  template <class From, class Also>
    requires std::constructible_from<T, From const&, Also const&>
  Leaf(std::in_place_t, From const& from, Also const& also) : value(from, also) {}
};

template <std::size_t I, class T>
constexpr T& get(Leaf<I, T>& leaf) {
  return leaf.value;
}
template <std::size_t I, class T>
constexpr T const& get(Leaf<I, T> const& leaf) {
  return leaf.value;
}

template <class Indices, class... Ts>
struct Leaves;

template <std::size_t... Is, class... Ts>
struct Leaves<std::index_sequence<Is...>, Ts...> : Leaf<Is, Ts>... {
  Leaves() = default;

  /// Constructs each leaf in place from the leaf at the same position: States need not be movable.
  template <class From>
  explicit Leaves(std::in_place_t, From const& from)
      : Leaf<Is, Ts>(std::in_place, get<Is>(from))... {}
  template <class From, class Also>
  Leaves(std::in_place_t, From const& from, Also const& also)
      : Leaf<Is, Ts>(std::in_place, get<Is>(from), also)... {}
};

template <class... Ts>
using Storage = Leaves<std::index_sequence_for<Ts...>, Ts...>;

}  // namespace frugal::detail
