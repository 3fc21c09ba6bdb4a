// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <concepts>
#include <string_view>
#include <type_traits>

#include <frugal/core/compose/about.hpp>
#include <frugal/core/compose/list.hpp>
#include <frugal/core/compose/rational.hpp>
#include <frugal/core/compose/written_name.hpp>

namespace frugal::detail {

/// The name of a type, without the arguments of a template whose arguments are known: compilers spell
/// these with their defaults or without.
template <class T>
constexpr std::string_view name_without_arguments() {
  constexpr std::string_view name = type_name<T>();
  return std::is_void_v<TemplateShape<T>> ? name : name.substr(0, name.find('<'));
}

/// The order of two values: texts by their characters; of one type, numbers and enumerators by size.
template <auto V, auto W>
constexpr std::weak_ordering value_order() {
  using T = std::remove_const_t<decltype(V)>;
  using U = std::remove_const_t<decltype(W)>;
  if constexpr (std::convertible_to<T, std::string_view> &&
                std::convertible_to<U, std::string_view>) {
    return std::string_view(V) <=> std::string_view(W);
  } else if constexpr (!std::same_as<T, U>) {
    return name_without_arguments<T>() <=> name_without_arguments<U>();
  } else if constexpr (std::same_as<T, Rational>) {
    return std::weak_order(V.value(), W.value());
  } else if constexpr (std::is_arithmetic_v<T> || std::is_enum_v<T>) {
    return std::weak_order(V, W);
  } else {
    return std::weak_ordering::equivalent;
  }
}

template <class T, class U>
struct TypeOrder;

/// The order of two lists: by their first types that differ; a list before one that continues it.
constexpr std::weak_ordering list_order(list<>, list<>) { return std::weak_ordering::equivalent; }
template <class... Us>
constexpr std::weak_ordering list_order(list<>, list<Us...>) {
  return std::weak_ordering::less;
}
template <class... Ts>
constexpr std::weak_ordering list_order(list<Ts...>, list<>) {
  return std::weak_ordering::greater;
}
template <class T, class... Ts, class U, class... Us>
constexpr std::weak_ordering list_order(list<T, Ts...>, list<U, Us...>) {
  constexpr std::weak_ordering first = TypeOrder<T, U>::value();
  if constexpr (first != 0) {
    return first;
  } else {
    return list_order(list<Ts...>{}, list<Us...>{});
  }
}

/// The order of two types by name, then argument by argument: the same with every compiler. Types of
/// several names that it cannot tell apart, such as lambdas, are equivalent or in the compiler's order.
template <class T, class U>
struct TypeOrder {
  static constexpr std::weak_ordering value() {
    constexpr std::weak_ordering names =
        name_without_arguments<T>() <=> name_without_arguments<U>();
    if constexpr (names == 0 && !std::is_void_v<TemplateShape<T>> &&
                  !std::is_void_v<TemplateShape<U>>) {
      return list_order(typename TemplateShape<T>::arguments{},
                        typename TemplateShape<U>::arguments{});
    } else {
      return names;
    }
  }
};
template <auto V, auto W>
struct TypeOrder<Value<V>, Value<W>> {
  static constexpr std::weak_ordering value() { return value_order<V, W>(); }
};

}  // namespace frugal::detail
