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

}  // namespace frugal
