// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <string_view>

namespace frugal {

/// A string as a template argument: `Watch<"accuracy", Better::higher>`.
template <std::size_t N>
struct fixed_string {
  char characters[N]{};

  // Implicit on purpose: a string literal becomes the template argument.
  constexpr fixed_string(char const (&text)[N]) {  // NOLINT(google-explicit-constructor)
    std::copy_n(text, N, characters);
  }
  constexpr operator std::string_view() const {  // NOLINT(google-explicit-constructor)
    return {characters, N - 1};
  }
};

/// The name of the alias by which users write a type. Specialise it next to the alias:
///
///     using WatchLoss = Watch<"loss", Better::lower>;
///     template <>
///     inline constexpr std::string_view alias_name<WatchLoss> = "WatchLoss";
///
/// `explain` and messages then show the alias instead of the template and its arguments. Saved
/// state does not depend on it.
template <class T>
inline constexpr std::string_view alias_name{};

}  // namespace frugal
