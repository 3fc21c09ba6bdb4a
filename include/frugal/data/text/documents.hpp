// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/base/hash.hpp>
#include <frugal/error.hpp>
#include <frugal/inline.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace frugal {

/// Documents as token ids, one after the other in memory: 4 bytes a token and 8 a document. A
/// SampleSet of `std::span<std::int32_t const>`, valid for as long as the object is.
class Documents {
 public:
  Documents() = default;

  FRUGAL_INLINE void reserve(std::size_t documents, std::size_t tokens) {
    ends_.reserve(documents);
    tokens_.reserve(tokens);
  }

  /// Adds one document, which may be empty.
  FRUGAL_INLINE void append(std::span<std::int32_t const> tokens) {
    tokens_.insert(tokens_.end(), tokens.begin(), tokens.end());
    ends_.push_back(tokens_.size());
  }

  /// Adds all documents of another.
  FRUGAL_INLINE void append(Documents const& more) {
    std::uint64_t const before = tokens_.size();
    tokens_.insert(tokens_.end(), more.tokens_.begin(), more.tokens_.end());
    for (std::uint64_t const end : more.ends_) ends_.push_back(before + end);
  }

  std::uint64_t size() const { return ends_.size(); }
  /// Tokens of all documents.
  std::uint64_t tokens() const { return tokens_.size(); }
  /// Tokens of document `index`, below size().
  std::uint64_t length(std::uint64_t index) const { return ends_[index] - begin_of(index); }

  std::span<std::int32_t const> get(std::uint64_t index) const {
    return std::span(tokens_).subspan(begin_of(index), length(index));
  }
  std::string name(std::uint64_t index) const { return "document " + std::to_string(index); }

  /// A hash of every token and of every document's length.
  FRUGAL_INLINE std::string identity() const {
    Hash hash;
    hash.update(std::as_bytes(std::span(ends_)));
    hash.update(std::as_bytes(std::span(tokens_)));
    return "documents " + hex_of(hash.digest());
  }

  friend bool operator==(Documents const&, Documents const&) = default;

 private:
  std::uint64_t begin_of(std::uint64_t index) const { return index == 0 ? 0 : ends_[index - 1]; }

  std::vector<std::int32_t> tokens_;
  std::vector<std::uint64_t> ends_;
};

}  // namespace frugal
