// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

namespace frugal {

/// Bytes [begin, end) of a text.
struct TextSpan {
  std::size_t begin = 0;
  std::size_t end = 0;

  friend bool operator==(TextSpan const&, TextSpan const&) = default;
};

/// The tokens of a text, or of a pair of texts.
struct Encoded {
  std::vector<std::int32_t> ids;
  std::vector<std::int32_t> types;  ///< 0 for the first text and 1 for the second: BERT's segments
  std::vector<TextSpan> spans;      ///< the bytes that a token comes from; empty for special tokens

  std::size_t size() const { return ids.size(); }

  void push(std::int32_t id, std::int32_t type, TextSpan span);
  void append(Encoded const& more);
  /// Keeps the first `count` tokens.
  void resize(std::size_t count);

  friend bool operator==(Encoded const&, Encoded const&) = default;
};

namespace detail {

inline constexpr std::size_t no_token_limit = std::numeric_limits<std::size_t>::max();

/// How many tokens of each of two texts stay if both may have `most`: the longer is cut to the
/// length of the shorter first, then both. The strategy `longest_first` of Python's `tokenizers`,
/// which gives the odd token to the longer text.
std::pair<std::size_t, std::size_t> longest_first(std::size_t first, std::size_t second,
                                                  std::size_t most);

}  // namespace detail
}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/data/text/encoded.ipp>
#endif
