// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <ranges>
#include <string>
#include <string_view>
#include <type_traits>
#include <unordered_map>
#include <vector>

namespace frugal {

namespace detail {

template <class T>
concept TextToken = std::integral<T> || std::convertible_to<T const&, std::string_view>;

}  // namespace detail

/// A text in tokens: a range of integers or of strings, such as std::vector<std::string>.
template <class R>
concept TokenSequence =
    std::ranges::input_range<R const> &&
    !std::convertible_to<R const&, std::string_view> &&  // which would be a range of characters
    detail::TextToken<std::ranges::range_value_t<R const>>;

namespace detail {

/// Numbers for the tokens of one hypothesis and its references: equal tokens have equal numbers.
class TokenNumbers {
 public:
  using Ids = std::vector<std::int64_t>;

  template <TokenSequence Text>
  Ids operator()(Text const& text) {
    Ids ids;
    for (auto const& token : text) {
      if constexpr (std::integral<std::remove_cvref_t<decltype(token)>>) {
        ids.push_back(static_cast<std::int64_t>(token));
      } else {
        auto const next = static_cast<std::int64_t>(known_.size());
        ids.push_back(known_.try_emplace(std::string(std::string_view(token)), next).first->second);
      }
    }
    return ids;
  }

 private:
  std::unordered_map<std::string, std::int64_t> known_;
};

}  // namespace detail
}  // namespace frugal
