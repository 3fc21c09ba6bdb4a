// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <charconv>
#include <concepts>
#include <cstddef>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <frugal/core/compose/about.hpp>
#include <frugal/core/compose/fixed_string.hpp>
#include <frugal/core/compose/list.hpp>
#include <frugal/core/compose/rational.hpp>

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

namespace frugal {

/// Which trailing default arguments a name omits.
enum class Defaults {
  first,  ///< all but the first, which identifies the policy: "EarlyStop<Patience<3>>"
  none,   ///< all: "EarlyStop"
};

namespace detail {

constexpr bool in_identifier(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/// Removes a qualification from a name, unless it is the end of a longer one.
void erase_scope(std::string& text, std::string_view scope);

/// A compiler's spelling of a type or value, without frugal's and unnamed namespaces, and without
/// g++'s description of an enclosing function. Compilers spell lambdas by position or by signature:
/// "lambda". clang spells a type without a name by its file and line: "unnamed".
std::string plain_spelling(std::string_view compiled);

/// The template's name in a compiler's spelling of its specialisation: the part before the
/// arguments, which begin with the last '<' that is neither nested nor in a string.
std::string template_name(std::string_view compiled);

/// "0.5" if a decimal is exact, otherwise "Rational{1, 3}".
std::string written_rational(Rational value);

/// A value as the compiler spells it.
template <auto V>
constexpr std::string_view value_spelling() {
  std::string_view const text = __PRETTY_FUNCTION__;
  std::size_t const begin = text.find("V = ") + 4;
  std::size_t const semicolon = text.find("; std::string_view", begin);
  std::size_t const end = semicolon == std::string_view::npos ? text.find_last_of(";]") : semicolon;
  return text.substr(begin, end - begin);
}

template <class T>
std::string written_name(Defaults defaults = Defaults::first);

/// A value argument as users write it: "Better::higher", "0.5", "\"accuracy\"".
template <auto V>
std::string written_value() {
  using T = std::remove_const_t<decltype(V)>;
  if constexpr (std::same_as<T, bool>) {
    return V ? "true" : "false";
  } else if constexpr (std::is_enum_v<T>) {
    std::string const text = plain_spelling(value_spelling<V>());
    if (text.starts_with('(')) return text;  // a number without a name
    std::string const enumerator = text.substr(text.rfind(':') + 1);
    if (std::convertible_to<T, int>) return enumerator;
    return written_name<T>(Defaults::first) + "::" + enumerator;
  } else if constexpr (std::is_integral_v<T>) {
    return std::to_string(V);
  } else if constexpr (std::is_floating_point_v<T>) {
    std::array<char, 40> text{};  // whatever the locale
    return {text.data(), std::to_chars(text.data(), text.data() + text.size(),
                                       static_cast<double>(V), std::chars_format::general, 15)
                             .ptr};
  } else if constexpr (std::same_as<T, Rational>) {
    return written_rational(V);
  } else if constexpr (std::convertible_to<T, std::string_view>) {
    return '"' + std::string(std::string_view(V)) + '"';
  } else if constexpr (std::is_class_v<T>) {
    return written_name<T>(Defaults::first);
  } else {
    std::string text = plain_spelling(value_spelling<V>());
    std::erase_if(text, [](char c) { return c == '&' || c == '(' || c == ')' || c == ' '; });
    return text;
  }
}

template <class T>
struct written_argument {
  static std::string text(Defaults defaults) { return written_name<T>(defaults); }
};
template <auto V>
struct written_argument<Value<V>> {
  static std::string text(Defaults) { return written_value<V>(); }
};

/// Each of the first written arguments, in the form of `written_name`.
template <class... Ts>
std::vector<std::string> written_arguments_of(list<Ts...>, std::size_t count,
                                              [[maybe_unused]] Defaults defaults) {
  std::vector<std::string> texts{written_argument<Ts>::text(defaults)...};
  texts.resize(std::min(count, texts.size()));
  return texts;
}

/// Numeric types that compilers spell with their words in different orders.
template <class T>
constexpr std::string_view number_name() {
  if (std::same_as<T, unsigned>) return "unsigned";
  if (std::same_as<T, long>) return "long";
  if (std::same_as<T, unsigned long>) return "unsigned long";
  if (std::same_as<T, long long>) return "long long";
  if (std::same_as<T, unsigned long long>) return "unsigned long long";
  if (std::same_as<T, short>) return "short";
  if (std::same_as<T, unsigned short>) return "unsigned short";
  return {};
}

/// A type as users write it after `using namespace frugal`, the same with every compiler:
/// "EarlyStop<Patience<3>, WatchAccuracy>". Uses its `identity` if declared, and the name of its
/// alias if known (alias_name). Namespaces other than frugal's stay.
template <class T>
std::string written_name(Defaults defaults) {
  if constexpr (requires { std::string_view(T::identity); }) {
    return std::string(std::string_view(T::identity));
  } else if constexpr (!alias_name<T>.empty()) {
    return std::string(alias_name<T>);
  } else if constexpr (!number_name<T>().empty()) {
    return std::string(number_name<T>());
  } else if constexpr (std::is_void_v<TemplateShape<T>>) {
    return plain_spelling(type_name<T>());
  } else {
    using S = TemplateShape<T>;
    std::size_t count = written_arguments<S>();
    if (defaults == Defaults::first && count == 0 && S::arguments::size != 0) count = 1;
    std::string text = template_name(type_name<T>());
    char const* before = "<";
    for (auto const& each : written_arguments_of(typename S::arguments{}, count, defaults)) {
      text += before + each;
      before = ", ";
    }
    if (count != 0) return text += '>';
    return defaults == Defaults::first ? text += "<>" : text;
  }
}

/// A policy in a table: written_name without the namespace of the policy itself; its arguments keep
/// theirs.
template <class P>
std::string policy_name(Defaults defaults = Defaults::first) {
  std::string name = written_name<P>(defaults);
  if constexpr (!requires { P::identity; }) {
    std::size_t const scope = name.rfind("::", name.find('<'));
    if (scope != std::string::npos) name.erase(0, scope + 2);
  }
  return name;
}

}  // namespace detail
}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/core/compose/written_name.ipp>
#endif
