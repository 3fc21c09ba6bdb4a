// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/core/compose/written_name.hpp>
#include <frugal/core/run/settings.hpp>
#include <frugal/error.hpp>

#include <array>
#include <charconv>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <utility>
#include <vector>

// A member as a text, and from one.
namespace frugal {

/// A member that a text may set.
struct Option {
  std::string name{};        ///< "optimize.lr"
  std::string group{};       ///< "Optimize"
  std::string help{};        ///< what the pages say of it
  std::string type{};        ///< "NUMBER", "true|false"
  std::string before{};      ///< its value when the program began
  bool is_optional = false;  ///< "none" leaves it unset
  bool is_row = false;       ///< several values, with commas
  std::function<void(std::string const&)> set{};
};

}  // namespace frugal

namespace frugal::detail {

/// A cadence, a start or a duration: one number.
template <class T>
concept Counts = std::is_class_v<T> && std::copy_constructible<T> && requires(T const& value) {
  requires std::is_arithmetic_v<decltype(value.count())>;
  T(value.count());
};

template <class T>
inline constexpr bool is_optional_setting = false;
template <class T>
inline constexpr bool is_optional_setting<std::optional<T>> = true;
template <class T>
inline constexpr bool is_setting_row = false;  ///< several values, with commas
template <class T>
inline constexpr bool is_setting_row<std::vector<T>> = true;
template <class T, std::size_t N>
inline constexpr bool is_setting_row<std::array<T, N>> = N != 0;

/// Whether a text can set a member of this type.
template <class T>
consteval bool is_setting() {
  if constexpr (is_optional_setting<T> || is_setting_row<T>) {
    return is_setting<typename T::value_type>();
  } else {
    return std::is_arithmetic_v<T> || std::is_enum_v<T> || std::same_as<T, std::string> ||
           std::same_as<T, std::filesystem::path> || std::same_as<T, DeviceSpec> || Counts<T>;
  }
}

/// The enumerators of an enumeration, of those with the values 0 to 15.
template <class E>
std::vector<std::pair<std::string, E>> enumerators() {
  std::vector<std::pair<std::string, E>> found;
  [&]<std::size_t... Is>(std::index_sequence<Is...>) {
    auto const look = [&](std::string_view spelling, E value) {
      // Compilers spell a value without a name as a cast: "(Resume)9".
      if (spelling.find('(') != std::string_view::npos || spelling.empty()) return;
      if (spelling.back() >= '0' && spelling.back() <= '9' &&
          spelling.find(':') == std::string_view::npos) {
        return;
      }
      std::size_t const colon = spelling.rfind(':');
      found.emplace_back(spelling.substr(colon == std::string_view::npos ? 0 : colon + 1), value);
    };
    (look(value_spelling<static_cast<E>(Is)>(), static_cast<E>(Is)), ...);
  }(std::make_index_sequence<16>{});
  return found;
}

/// What a text for a member of this type looks like.
template <class T>
std::string setting_type() {
  if constexpr (is_optional_setting<T>) {
    return setting_type<typename T::value_type>();
  } else if constexpr (is_setting_row<T>) {
    return setting_type<typename T::value_type>() + ",...";
  } else if constexpr (std::same_as<T, bool>) {
    return "true|false";
  } else if constexpr (std::is_enum_v<T>) {
    std::string all;
    for (auto const& [name, value] : enumerators<T>()) all += (all.empty() ? "" : "|") + name;
    return all;
  } else if constexpr (Counts<T>) {
    return setting_type<decltype(std::declval<T const&>().count())>();
  } else if constexpr (std::integral<T>) {
    return "INT";
  } else if constexpr (std::floating_point<T>) {
    return "NUMBER";
  } else if constexpr (std::same_as<T, std::filesystem::path>) {
    return "PATH";
  } else {
    return "TEXT";
  }
}

template <class T>
std::string setting_text(T const& value) {
  if constexpr (is_optional_setting<T>) {
    return value ? setting_text(*value) : "none";
  } else if constexpr (is_setting_row<T>) {
    std::string all;
    for (auto const& each : value) all += (all.empty() ? "" : ",") + setting_text(each);
    return all;
  } else if constexpr (std::same_as<T, bool>) {
    return value ? "true" : "false";
  } else if constexpr (std::is_enum_v<T>) {
    for (auto const& [name, each] : enumerators<T>()) {
      if (each == value) return name;
    }
    return std::to_string(static_cast<long long>(value));
  } else if constexpr (std::is_arithmetic_v<T>) {
    std::array<char, 64> text{};  // whatever the locale
    return {text.data(), std::to_chars(text.data(), text.data() + text.size(), value).ptr};
  } else if constexpr (Counts<T>) {
    return setting_text(value.count());
  } else if constexpr (std::same_as<T, std::filesystem::path>) {
    return value.string();
  } else if constexpr (std::same_as<T, DeviceSpec>) {
    return value.is_given() ? value.str() : "that of the module";
  } else {
    return value;
  }
}

[[noreturn]] inline void refuse_setting(std::string_view name, std::string_view text,
                                        std::string why, std::string fix) {
  throw SettingsError({.what = "'" + std::string(text) + "' is no value of " + std::string(name),
                       .where = "the command line or the file of --config",
                       .why = std::move(why),
                       .fix = std::move(fix)});
}

template <class T>
T number_of(std::string_view name, std::string_view text) {
  T value{};
  std::string_view digits = text;
  if (digits.starts_with('+') && !digits.starts_with("+-")) digits.remove_prefix(1);
  auto const [end, failure] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  bool const whole = failure == std::errc() && end == digits.data() + digits.size();
  if constexpr (std::floating_point<T>) {
    if (whole && !std::isnan(value)) return value;
    if (failure == std::errc::result_out_of_range) {
      refuse_setting(name, text, "it is too large or too small for its type",
                     "Give a number that fits, such as 1e-3.");
    }
    refuse_setting(name, text, "it is a number", "Give one, such as 1e-3.");
  } else {
    if (whole) return value;
    if (failure == std::errc::result_out_of_range) {
      refuse_setting(name, text, "it is too large, or negative", "Give a whole number that fits.");
    }
    refuse_setting(
        name, text,
        std::unsigned_integral<T> ? "it is a whole number from 0 on" : "it is a whole number",
        "Give one, such as 100.");
  }
}

/// The value that a text names. SettingsError for one of another type or range.
template <class T>
T setting_of(std::string_view name, std::string const& text) {
  if constexpr (is_optional_setting<T>) {
    if (text == "none") return {};
    return setting_of<typename T::value_type>(name, text);
  } else if constexpr (is_setting_row<T>) {
    std::vector<std::string> parts;
    for (std::size_t at = 0; at <= text.size() && !text.empty();) {
      std::size_t const comma = std::min(text.find(',', at), text.size());
      parts.push_back(text.substr(at, comma - at));
      at = comma + 1;
    }
    T row{};
    if constexpr (requires { row.resize(1); }) row.resize(parts.size());
    if (parts.size() != row.size()) {
      refuse_setting(name, text, "it has " + std::to_string(row.size()) + " values",
                     "Give so many, with commas between them.");
    }
    for (std::size_t i = 0; i < parts.size(); ++i) {
      row[i] = setting_of<typename T::value_type>(name, parts[i]);
    }
    return row;
  } else if constexpr (std::same_as<T, bool>) {
    if (text == "true" || text == "yes" || text == "on" || text == "1") return true;
    if (text == "false" || text == "no" || text == "off" || text == "0") return false;
    refuse_setting(name, text, "it is true or false", "Give one of them.");
  } else if constexpr (std::is_enum_v<T>) {
    for (auto const& [each, value] : enumerators<T>()) {
      if (each == text) return value;
    }
    refuse_setting(name, text, "it is one of " + setting_type<T>(), "Give one of them.");
  } else if constexpr (std::is_arithmetic_v<T>) {
    return number_of<T>(name, text);
  } else if constexpr (Counts<T>) {
    using Number = decltype(std::declval<T const&>().count());
    auto const count = number_of<Number>(name, text);
    try {
      return T(count);
    } catch (SettingsError const& error) {
      refuse_setting(name, text, error.fault().why, error.fault().fix);
    }
  } else {
    return T(text);
  }
}

}  // namespace frugal::detail
