// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <cstddef>
#include <type_traits>
#include <utility>

#include <frugal/core/compose/list.hpp>

/// The template arguments of a type: `arguments_of<Every<2, Epoch>>` is list<Value<2>, Epoch>.
namespace frugal::detail {

/// A value argument in a list of types.
template <auto V>
struct Value {
  static constexpr auto value = V;
};

// A template whose arguments are types, values, or first one and then the other. `same` says
// whether the first arguments alone give the same type: then the others are defaults.

template <template <class...> class P, class... Ts>
struct OfTypes {
  using arguments = list<Ts...>;
  template <std::size_t... Is>
  static constexpr bool same(std::index_sequence<Is...>) {
    if constexpr (requires { typename std::type_identity<P<type_at<arguments, Is>...>>::type; }) {
      return std::same_as<P<type_at<arguments, Is>...>, P<Ts...>>;
    } else {
      return false;
    }
  }
};

template <template <auto...> class P, auto... Vs>
struct OfValues {
  using arguments = list<Value<Vs>...>;
  template <std::size_t... Is>
  static constexpr bool same(std::index_sequence<Is...>) {
    if constexpr (requires {
                    typename std::type_identity<P<type_at<arguments, Is>::value...>>::type;
                  }) {
      return std::same_as<P<type_at<arguments, Is>::value...>, P<Vs...>>;
    } else {
      return false;
    }
  }
};

template <template <auto, class...> class P, auto V, class... Ts>
struct OfValueAndTypes {
  using arguments = list<Value<V>, Ts...>;
  // P<> is invalid for a parameter whose template has a first argument; deduction accepts it.
  static constexpr bool same(std::index_sequence<>) {
    if constexpr (requires { P{}; }) {
      return std::same_as<decltype(P{}), P<V, Ts...>>;
    } else {
      return false;
    }
  }
  template <std::size_t First, std::size_t... Is>
  static constexpr bool same(std::index_sequence<First, Is...>) {
    if constexpr (requires {
                    typename std::type_identity<P<V, type_at<arguments, Is>...>>::type;
                  }) {
      return std::same_as<P<V, type_at<arguments, Is>...>, P<V, Ts...>>;
    } else {
      return false;
    }
  }
};

template <template <class, auto...> class P, class T, auto... Vs>
struct OfTypeAndValues {
  using arguments = list<T, Value<Vs>...>;
  static constexpr bool same(std::index_sequence<>) {
    if constexpr (requires { P{}; }) {
      return std::same_as<decltype(P{}), P<T, Vs...>>;
    } else {
      return false;
    }
  }
  template <std::size_t First, std::size_t... Is>
  static constexpr bool same(std::index_sequence<First, Is...>) {
    if constexpr (requires {
                    typename std::type_identity<P<T, type_at<arguments, Is>::value...>>::type;
                  }) {
      return std::same_as<P<T, type_at<arguments, Is>::value...>, P<T, Vs...>>;
    } else {
      return false;
    }
  }
};

// Several shapes fit a template with one type argument: the higher rank wins.
template <int Rank>
struct ShapeRank : ShapeRank<Rank - 1> {};
template <>
struct ShapeRank<0> {};

template <template <class...> class P, class... Ts>
OfTypes<P, Ts...> shape_of(std::type_identity<P<Ts...>>, ShapeRank<4>);
template <template <auto...> class P, auto... Vs>
OfValues<P, Vs...> shape_of(std::type_identity<P<Vs...>>, ShapeRank<3>);
template <template <auto, class...> class P, auto V, class... Ts>
OfValueAndTypes<P, V, Ts...> shape_of(std::type_identity<P<V, Ts...>>, ShapeRank<2>);
template <template <class, auto...> class P, class T, auto... Vs>
OfTypeAndValues<P, T, Vs...> shape_of(std::type_identity<P<T, Vs...>>, ShapeRank<1>);
template <class T>
void shape_of(std::type_identity<T>, ShapeRank<0>);

/// One of the shapes above; void for a type that is not a template, or mixes its arguments
/// otherwise.
template <class T>
using TemplateShape = decltype(shape_of(std::type_identity<T>{}, ShapeRank<4>{}));

/// The number of arguments that must be written, without defaults.
template <class TemplateShape>
consteval std::size_t written_arguments() {
  constexpr std::size_t all = TemplateShape::arguments::size;
  return []<std::size_t... Ns>(std::index_sequence<Ns...>) {
    std::size_t fewest = all;
    ((fewest == all && TemplateShape::same(std::make_index_sequence<Ns>{}) ? void(fewest = Ns)
                                                                           : void()),
     ...);
    return fewest;
  }(std::make_index_sequence<all>{});
}

}  // namespace frugal::detail
