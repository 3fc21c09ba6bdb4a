// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>
#include <c10/core/DeviceType.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <concepts>
#include <cstddef>
#include <filesystem>
#include <optional>
#include <ranges>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include <frugal/core/source/data_identity.hpp>
#include <frugal/core/source/described_transform.hpp>
#include <frugal/core/source/tensor_identity.hpp>

// The values of a policy or an objective as a text, by which two processes, or two starts of one program, compare
// what they were given.
namespace frugal::detail {

/// Becomes a value of any type, but not a T or a base of it: a copy of T is not its first member.
template <class T>
struct AnyMember {
  template <class U>
    requires(!std::same_as<U, T> && !std::derived_from<T, U>)
  operator U() const noexcept;
};
/// Becomes a value that has no default, such as an at::Device.
struct AnyWithoutDefault {
  template <class U>
    requires(std::is_class_v<U> && !std::is_default_constructible_v<U>)
  operator U() const noexcept;
};
/// Becomes a base of T, and nothing else.
template <class T>
struct AnyBase {
  template <class U>
    requires(!std::same_as<U, T> && std::derived_from<T, U>)
  operator U() const noexcept;
};

template <class T, std::size_t>
using any_member = AnyMember<T>;

template <class T, std::size_t... Is>
constexpr bool is_made_of(std::index_sequence<Is...>) {
  return requires { T{any_member<T, Is>{}...}; };
}
/// With one more member, which has a default.
template <class T, std::size_t... Is>
constexpr bool has_more_than(std::index_sequence<Is...>) {
  return requires { T{any_member<T, Is>{}..., {}}; };
}
/// With a default in place of member `sizeof...(Before)`, or a value that has none. An array takes several values, and
/// one default.
template <class T, std::size_t... Before, std::size_t... After>
constexpr bool is_one_member(std::index_sequence<Before...>, std::index_sequence<After...>) {
  return requires { T{any_member<T, Before>{}..., {}, any_member<T, After>{}...}; } || requires {
    T{any_member<T, Before>{}..., AnyWithoutDefault{}, any_member<T, After>{}...};
  };
}
template <class T, std::size_t Count, std::size_t... Is>
constexpr bool are_single_members(std::index_sequence<Is...>) {
  return (
      true && ... &&
      is_one_member<T>(std::make_index_sequence<Is>{}, std::make_index_sequence<Count - 1 - Is>{}));
}

inline constexpr std::size_t most_members = 20;

template <class T, std::size_t Count = most_members>
constexpr std::size_t count_members() {
  if constexpr (is_made_of<T>(std::make_index_sequence<Count>{})) {
    return Count;
  } else if constexpr (Count == 0) {
    return 0;
  } else {
    return count_members<T, Count - 1>();
  }
}

/// Whether the members of T can be taken apart: it is an aggregate without bases and arrays of C.
template <class T>
constexpr bool has_visible_members() {
  if constexpr (!std::is_aggregate_v<T> || std::is_union_v<T> || std::is_array_v<T>) {
    return false;
  } else if constexpr (requires { T{AnyBase<T>{}}; }) {
    return false;
  } else {
    constexpr std::size_t count = count_members<T>();
    return count != 0 && !has_more_than<T>(std::make_index_sequence<count>{}) &&
           are_single_members<T, count>(std::make_index_sequence<count>{});
  }
}

/// Calls `call` with references to the members of an aggregate.
template <class T, class Call>
auto with_members(T const& of, Call&& call) {
  constexpr std::size_t count = count_members<T>();
  // clang-format off
  if constexpr (count == 1) { auto const& [a] = of; return call(a); }
  else if constexpr (count == 2) { auto const& [a, b] = of; return call(a, b); }
  else if constexpr (count == 3) { auto const& [a, b, c] = of; return call(a, b, c); }
  else if constexpr (count == 4) { auto const& [a, b, c, d] = of; return call(a, b, c, d); }
  else if constexpr (count == 5) { auto const& [a, b, c, d, e] = of; return call(a, b, c, d, e); }
  else if constexpr (count == 6) { auto const& [a, b, c, d, e, f] = of; return call(a, b, c, d, e, f); }
  else if constexpr (count == 7) { auto const& [a, b, c, d, e, f, g] = of; return call(a, b, c, d, e, f, g); }
  else if constexpr (count == 8) { auto const& [a, b, c, d, e, f, g, h] = of; return call(a, b, c, d, e, f, g, h); }
  else if constexpr (count == 9) { auto const& [a, b, c, d, e, f, g, h, i] = of; return call(a, b, c, d, e, f, g, h, i); }
  else if constexpr (count == 10) { auto const& [a, b, c, d, e, f, g, h, i, j] = of; return call(a, b, c, d, e, f, g, h, i, j); }
  else if constexpr (count == 11) { auto const& [a, b, c, d, e, f, g, h, i, j, k] = of; return call(a, b, c, d, e, f, g, h, i, j, k); }
  else if constexpr (count == 12) { auto const& [a, b, c, d, e, f, g, h, i, j, k, l] = of; return call(a, b, c, d, e, f, g, h, i, j, k, l); }
  else if constexpr (count == 13) { auto const& [a, b, c, d, e, f, g, h, i, j, k, l, m] = of; return call(a, b, c, d, e, f, g, h, i, j, k, l, m); }
  else if constexpr (count == 14) { auto const& [a, b, c, d, e, f, g, h, i, j, k, l, m, n] = of; return call(a, b, c, d, e, f, g, h, i, j, k, l, m, n); }
  else if constexpr (count == 15) { auto const& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o] = of; return call(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o); }
  else if constexpr (count == 16) { auto const& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p] = of; return call(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p); }
  else if constexpr (count == 17) { auto const& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q] = of; return call(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q); }
  else if constexpr (count == 18) { auto const& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r] = of; return call(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r); }
  else if constexpr (count == 19) { auto const& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s] = of; return call(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s); }
  else { auto const& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t] = of; return call(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t); }
  // clang-format on
}

/// In quotes that no text can end before its end: {"a", "b"} and {"a\", \"b"} are two texts.
inline std::string quoted_text(std::string_view text) {
  std::string quoted = "\"";
  for (char const c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return quoted + '"';
}

template <class T>
std::string member_text(T const& value);

template <class... Ts>
std::string member_texts(Ts const&... values) {
  std::string text = "{";
  ((text += (text.size() == 1 ? "" : ", ") + member_text(values)), ...);
  return text + "}";
}

/// A range, but not one of itself.
template <class T>
concept RangeOfOthers =
    std::ranges::input_range<T const> &&
    !std::same_as<std::remove_cvref_t<std::ranges::range_reference_t<T const>>, T>;

template <class>
inline constexpr bool is_variant = false;
template <class... Ts>
inline constexpr bool is_variant<std::variant<Ts...>> = true;

/// A value: a number by its shortest digits, a tensor by its hash, an aggregate and a range by their members, another
/// class by the text with which it describes itself (identity(), describe(), settings(), identify()). A device without
/// its index: processes on two GPUs have the same values. "-" for what says nothing that another process could compare:
/// pointers, functions, folders, classes with private members, and aggregates whose members cannot be taken apart.
/// tells_members() is false for the last ones, which would be alike whatever they hold.
template <class T>
std::string member_text(T const& value) {
  if constexpr (std::same_as<T, bool>) {
    return value ? "true" : "false";
  } else if constexpr (std::is_enum_v<T>) {
    return std::to_string(static_cast<long long>(value));
  } else if constexpr (std::integral<T>) {
    return std::to_string(value);
  } else if constexpr (std::floating_point<T>) {
    std::array<char, 64> text{};  // whatever the locale
    return {text.data(), std::to_chars(text.data(), text.data() + text.size(), value).ptr};
  } else if constexpr (std::is_pointer_v<T> || std::same_as<T, std::filesystem::path>) {
    return "-";
  } else if constexpr (std::convertible_to<T const&, std::string_view>) {
    return quoted_text(std::string_view(value));
  } else if constexpr (std::same_as<T, at::Tensor>) {
    return tensor_identity(value);
  } else if constexpr (std::same_as<T, c10::Device>) {
    return c10::DeviceTypeName(value.type(), /*lower_case=*/true);
  } else if constexpr (DescribedTransform<T>) {
    return quoted_text(short_transform_text(value));
  } else if constexpr (HasSettings<T>) {
    return quoted_text(std::string(value.settings()));
  } else if constexpr (Identifies<T>) {
    DataIdentity all;
    value.identify(all);
    return member_text(all.values());
  } else if constexpr (requires {
                         value.has_value();
                         *value;
                       }) {
    return value.has_value() ? member_text(*value) : "none";
  } else if constexpr (is_variant<T>) {
    if (value.valueless_by_exception()) return "-";
    return std::visit(
        [&](auto const& held) { return std::to_string(value.index()) + " " + member_text(held); },
        value);
  } else if constexpr (RangeOfOthers<T>) {
    std::vector<std::string> texts;
    for (auto const& each : value) texts.push_back(member_text(each));
    // A hash table has an order that another process need not have.
    if constexpr (requires { typename T::hasher; }) std::ranges::sort(texts);
    std::string text = "[";
    for (std::string const& each : texts) text += (text.size() == 1 ? "" : ", ") + each;
    return text + "]";
  } else if constexpr (requires { std::tuple_size<T>::value; }) {
    return std::apply([](auto const&... each) { return member_texts(each...); }, value);
  } else if constexpr (std::is_empty_v<T>) {
    return "{}";
  } else if constexpr (has_visible_members<T>()) {
    return with_members(value, [](auto const&... each) { return member_texts(each...); });
  } else {
    return "-";
  }
}

/// Whether member_text() tells two values of T apart, as far as its members are open: false for an aggregate that has
/// members it cannot take apart, at any depth.
template <class T>
constexpr bool tells_members() {
  if constexpr (std::is_arithmetic_v<T> || std::is_enum_v<T> || std::is_pointer_v<T> ||
                std::same_as<T, std::filesystem::path> ||
                std::convertible_to<T const&, std::string_view> || std::same_as<T, at::Tensor> ||
                std::same_as<T, c10::Device> || DescribedTransform<T> || HasSettings<T> ||
                Identifies<T>) {
    return true;
  } else if constexpr (requires(T const& value) {
                         value.has_value();
                         *value;
                       }) {
    return tells_members<std::remove_cvref_t<decltype(*std::declval<T const&>())>>();
  } else if constexpr (is_variant<T>) {
    return []<class... Ts>(std::type_identity<std::variant<Ts...>>) {
      return (true && ... && tells_members<Ts>());
    }(std::type_identity<T>{});
  } else if constexpr (RangeOfOthers<T>) {
    return tells_members<std::remove_cvref_t<std::ranges::range_reference_t<T const>>>();
  } else if constexpr (requires { std::tuple_size<T>::value; }) {
    return []<std::size_t... Is>(std::index_sequence<Is...>) {
      return (true && ... && tells_members<std::remove_cvref_t<std::tuple_element_t<Is, T>>>());
    }(std::make_index_sequence<std::tuple_size_v<T>>{});
  } else if constexpr (std::is_empty_v<T>) {
    return true;
  } else if constexpr (has_visible_members<T>()) {
    auto const tell = [](auto const&... each) {
      return std::bool_constant<(true && ... &&
                                 tells_members<std::remove_cvref_t<decltype(each)>>())>{};
    };
    return decltype(with_members(std::declval<T const&>(), tell))::value;
  } else {
    return !std::is_aggregate_v<T>;
  }
}

}  // namespace frugal::detail
