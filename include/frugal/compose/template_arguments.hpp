// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <cstddef>
#include <type_traits>
#include <utility>

#include <frugal/compose/list.hpp>

/// What a type was made of: `arguments_of<Every<2, Epoch>>` is list<Value<2>, Epoch>.
namespace frugal::detail {

/// An argument that is a value, in a list of types.
template <auto V>
struct Value {
  static constexpr auto value = V;
};

// A template whose arguments are types, values, or one of the one and then the other. `same` says
// whether the first of them alone make the same type: the others are defaults then.

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
  // P<> cannot be written of a parameter that has a first argument; deduction can do without.
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

// Several shapes fit a template of one type: the one of the higher rank is taken.
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

/// One of the shapes above; void for what is no template, or mixes its arguments otherwise.
template <class T>
using TemplateShape = decltype(shape_of(std::type_identity<T>{}, ShapeRank<4>{}));

/// How many arguments have to be written, defaults left out.
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
