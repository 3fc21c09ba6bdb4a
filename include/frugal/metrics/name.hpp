// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <string_view>

#include <frugal/core/compose/fixed_string.hpp>

namespace frugal::detail {

/// A text of a type as an argument of a template.
template <class Metric>
inline constexpr auto fixed_name = [] {
  constexpr std::string_view name = Metric::name;
  char text[name.size() + 1]{};
  std::copy(name.begin(), name.end(), text);
  return fixed_string(text);
}();

template <fixed_string... Parts>
struct JoinedName {
  static constexpr auto text = [] {
    std::array<char, (std::string_view(Parts).size() + ...)> all{};
    char* end = all.data();
    ((end = std::copy_n(Parts.characters, std::string_view(Parts).size(), end)), ...);
    return all;
  }();
};
/// Texts as one: "f1" and "_macro".
template <fixed_string... Parts>
inline constexpr std::string_view metric_name_of{JoinedName<Parts...>::text.data(),
                                                 JoinedName<Parts...>::text.size()};

template <fixed_string First, int Number>
struct NumberedName {
  static constexpr std::string_view first = First;
  static constexpr auto text = [] {
    constexpr std::size_t digits = [] {
      std::size_t count = 1;
      for (int rest = Number / 10; rest != 0; rest /= 10) ++count;
      return count;
    }();
    std::array<char, first.size() + digits> all{};
    std::copy(first.begin(), first.end(), all.begin());
    std::size_t place = all.size();
    for (int rest = Number; place != first.size(); rest /= 10) {
      all[--place] = static_cast<char>('0' + rest % 10);
    }
    return all;
  }();
};
/// A text and a number: "top" and 5.
template <fixed_string First, int Number>
inline constexpr std::string_view numbered_metric_name{NumberedName<First, Number>::text.data(),
                                                       NumberedName<First, Number>::text.size()};

}  // namespace frugal::detail
