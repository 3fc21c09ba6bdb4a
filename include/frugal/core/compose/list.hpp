// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <type_traits>
#include <utility>

namespace frugal {

/// A list of types, for `listens`, `needs`, `conflicts`, `before` and `after`.
template <class... Ts>
struct list {
  static constexpr std::size_t size = sizeof...(Ts);
};

template <class T>
inline constexpr bool is_list = false;
template <class... Ts>
inline constexpr bool is_list<list<Ts...>> = true;

template <class T, class List>
inline constexpr bool contains = false;
template <class T, class... Ts>
inline constexpr bool contains<T, list<Ts...>> = (std::is_same_v<T, Ts> || ...);

namespace detail {

template <class... Lists>
struct concatenation {
  using type = list<>;
};
template <class... Ts>
struct concatenation<list<Ts...>> {
  using type = list<Ts...>;
};
template <class... Ts, class... Us, class... Rest>
struct concatenation<list<Ts...>, list<Us...>, Rest...>
    : concatenation<list<Ts..., Us...>, Rest...> {};

// Lookup by position is one overload resolution, whatever the length: recursive type lists make a
// template library slow to compile.
template <std::size_t I, class T>
struct indexed {};

template <class Indices, class... Ts>
struct index_map;
template <std::size_t... Is, class... Ts>
struct index_map<std::index_sequence<Is...>, Ts...> : indexed<Is, Ts>... {};

template <std::size_t I, class T>
std::type_identity<T> lookup(indexed<I, T> const&);

template <class List>
struct index_map_of;
template <class... Ts>
struct index_map_of<list<Ts...>> {
  using type = index_map<std::index_sequence_for<Ts...>, Ts...>;
};

}  // namespace detail

template <class... Lists>
using concat = typename detail::concatenation<Lists...>::type;

/// The type at position I of a list.
template <class List, std::size_t I>
using type_at = typename decltype(detail::lookup<I>(
    std::declval<typename detail::index_map_of<List>::type const&>()))::type;

}  // namespace frugal
