// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/data/text/tokenise.hpp>

#include <frugal/base/hash.hpp>
#include <frugal/error.hpp>
#include <frugal/inline.hpp>

#include <utility>

namespace frugal {

FRUGAL_INLINE void Encoded::push(std::int32_t id, std::int32_t type, TextSpan span) {
  ids.push_back(id);
  types.push_back(type);
  spans.push_back(span);
}

FRUGAL_INLINE void Encoded::append(Encoded const& more) {
  ids.insert(ids.end(), more.ids.begin(), more.ids.end());
  types.insert(types.end(), more.types.begin(), more.types.end());
  spans.insert(spans.end(), more.spans.begin(), more.spans.end());
}

FRUGAL_INLINE void Encoded::resize(std::size_t count) {
  ids.resize(count);
  types.resize(count);
  spans.resize(count);
}

}  // namespace frugal

namespace frugal::detail {

FRUGAL_INLINE std::pair<std::size_t, std::size_t> longest_first(std::size_t first,
                                                                std::size_t second,
                                                                std::size_t most) {
  if (first <= most && second <= most - first) return {first, second};
  bool const swapped = first > second;
  std::size_t less = std::min(first, second);
  std::size_t more = less > most ? less : std::max(less, most - less);
  if (less > most - std::min(most, more)) {
    less = most / 2;
    more = less + most % 2;
  }
  return swapped ? std::pair{more, less} : std::pair{less, more};
}

}  // namespace frugal::detail

namespace frugal {

FRUGAL_INLINE void Documents::reserve(std::size_t documents, std::size_t tokens) {
  ends_.reserve(documents);
  tokens_.reserve(tokens);
}

FRUGAL_INLINE void Documents::append(std::span<std::int32_t const> tokens) {
  tokens_.insert(tokens_.end(), tokens.begin(), tokens.end());
  ends_.push_back(tokens_.size());
}

FRUGAL_INLINE void Documents::append(Documents const& more) {
  std::uint64_t const before = tokens_.size();
  tokens_.insert(tokens_.end(), more.tokens_.begin(), more.tokens_.end());
  for (std::uint64_t const end : more.ends_) ends_.push_back(before + end);
}

FRUGAL_INLINE std::string Documents::identity() const {
  Hash hash;
  hash.update(std::as_bytes(std::span(ends_)));
  hash.update(std::as_bytes(std::span(tokens_)));
  return "documents " + hex_of(hash.digest());
}

}  // namespace frugal
