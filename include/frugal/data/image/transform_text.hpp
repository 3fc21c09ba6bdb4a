// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <ranges>
#include <string>
#include <type_traits>

#include <frugal/base/number_text.hpp>

namespace frugal::detail {

inline std::string number_text(double number) {
  return general(number, 17) + ",";  // every bit of it
}

/// What a transform of images is, for caches: its name, the version of its code, and its settings.
/// Raise the version when the code gives other images.
template <class... Settings>
std::string image_transform_text(char const* name, int code_version, Settings const&... settings) {
  std::string text = std::string(name) + "/" + std::to_string(code_version) + "(";
  [[maybe_unused]] auto const add = [&](auto const& setting) {
    if constexpr (std::ranges::range<decltype(setting)>) {
      text += '[';
      for (auto const& each : setting) text += number_text(static_cast<double>(each));
      text += "],";
    } else if constexpr (std::integral<std::remove_cvref_t<decltype(setting)>>) {
      text += std::to_string(setting) + ",";  // a stream's number has more bits than a double
    } else {
      text += number_text(static_cast<double>(setting));
    }
  };
  (add(settings), ...);
  return text + ")";
}

}  // namespace frugal::detail
