// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <xxhash.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <span>
#include <string>

namespace frugal {

/// Incremental XXH3, 64 bits; the result does not depend on how the bytes are split. It detects
/// damage but not forgery. The algorithm is frozen since xxHash 0.8.0.
class Hash {
 public:
  Hash() : state_(XXH3_createState()) {
    if (!state_) throw std::bad_alloc();
    XXH3_64bits_reset(state_.get());
  }

  void update(std::span<std::byte const> bytes) {
    XXH3_64bits_update(state_.get(), bytes.data(), bytes.size());
  }

  /// The hash of all bytes so far; more may follow.
  std::uint64_t digest() const { return XXH3_64bits_digest(state_.get()); }

  static std::uint64_t of(std::span<std::byte const> bytes) {
    return XXH3_64bits(bytes.data(), bytes.size());
  }

 private:
  struct Free {
    void operator()(XXH3_state_t* state) const noexcept { XXH3_freeState(state); }
  };

  std::unique_ptr<XXH3_state_t, Free> state_;
};

/// 16 lower-case hexadecimal digits.
std::string hex_of(std::uint64_t hash);

/// Forwards writes to a sink (anything with `write(std::span<std::byte const>)`), and hashes and
/// counts the bytes.
template <class Sink>
class Hashed {
 public:
  explicit Hashed(Sink& sink) : sink_(sink) {}

  void write(std::span<std::byte const> bytes) {
    // In pieces, so that the sink finds the bytes that were just hashed in the cache.
    while (!bytes.empty()) {
      auto const piece = bytes.first(std::min(bytes.size(), piece_size));
      hash_.update(piece);
      sink_.write(piece);
      size_ += piece.size();
      bytes = bytes.subspan(piece.size());
    }
  }

  std::uint64_t digest() const { return hash_.digest(); }
  std::uint64_t size() const noexcept { return size_; }  ///< in bytes
  Sink& sink() noexcept { return sink_; }

 private:
  static constexpr std::size_t piece_size = std::size_t{1} << 20;  // half of a usual L2 cache

  Sink& sink_;
  Hash hash_;
  std::uint64_t size_ = 0;
};

}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/base/hash.ipp>
#endif
