// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/data/text/tokenise.hpp>

#include <frugal/base/hash.hpp>
#include <frugal/error.hpp>
#include <frugal/inline.hpp>

#include <utility>

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
