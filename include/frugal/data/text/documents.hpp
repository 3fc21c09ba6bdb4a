// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace frugal {

/// Documents as token ids, one after the other in memory: 4 bytes a token and 8 a document. A
/// SampleSet of `std::span<std::int32_t const>`, valid for as long as the object is.
class Documents {
 public:
  Documents() = default;

  void reserve(std::size_t documents, std::size_t tokens);

  /// Adds one document, which may be empty.
  void append(std::span<std::int32_t const> tokens);

  /// Adds all documents of another.
  void append(Documents const& more);

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
  std::string identity() const;

  friend bool operator==(Documents const&, Documents const&) = default;

 private:
  std::uint64_t begin_of(std::uint64_t index) const { return index == 0 ? 0 : ends_[index - 1]; }

  std::vector<std::int32_t> tokens_;
  std::vector<std::uint64_t> ends_;
};

}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/data/text/documents.ipp>
#endif
