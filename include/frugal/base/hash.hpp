// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <xxhash.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <string_view>

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

namespace frugal::detail {

/// SipHash-2-4 with 128 bits of output (Aumasson and Bernstein, 2012): a keyed hash that nobody computes
/// without the key. The other hashes here find damage, and can be forged.
class SipHash {
 public:
  using Key = std::array<std::uint64_t, 2>;
  using Tag = std::array<std::uint64_t, 2>;

  static Tag of(Key const& key, std::string_view text) {
    std::uint64_t v0 = key[0] ^ 0x736f6d6570736575, v1 = key[1] ^ 0x646f72616e646f6d ^ 0xee;
    std::uint64_t v2 = key[0] ^ 0x6c7967656e657261, v3 = key[1] ^ 0x7465646279746573;
    auto const rounds = [&](int count) {
      for (int i = 0; i < count; ++i) {
        v0 += v1, v1 = std::rotl(v1, 13) ^ v0, v0 = std::rotl(v0, 32);
        v2 += v3, v3 = std::rotl(v3, 16) ^ v2;
        v0 += v3, v3 = std::rotl(v3, 21) ^ v0;
        v2 += v1, v1 = std::rotl(v1, 17) ^ v2, v2 = std::rotl(v2, 32);
      }
    };
    std::size_t const whole = text.size() / 8;
    for (std::size_t i = 0; i <= whole; ++i) {
      // The last word has what is left, and the length.
      std::string_view const part = text.substr(8 * i, 8);
      std::uint64_t word = i == whole ? std::uint64_t{text.size() & 0xff} << 56 : 0;
      for (std::size_t byte = 0; byte < part.size(); ++byte) {
        word |= std::uint64_t{static_cast<unsigned char>(part[byte])} << (8 * byte);
      }
      v3 ^= word;
      rounds(2);
      v0 ^= word;
    }
    Tag tag{};
    v2 ^= 0xee;
    rounds(4);
    tag[0] = v0 ^ v1 ^ v2 ^ v3;
    v1 ^= 0xdd;
    rounds(4);
    tag[1] = v0 ^ v1 ^ v2 ^ v3;
    return tag;
  }

  /// 32 digits, in the order of the bytes.
  static std::string hex(Tag const& tag) {
    std::string text;
    for (std::uint64_t const word : tag) {
      for (int byte = 0; byte < 8; ++byte) {
        auto const value = static_cast<unsigned>(word >> (8 * byte) & 0xff);
        text += "0123456789abcdef"[value >> 4];
        text += "0123456789abcdef"[value & 15];
      }
    }
    return text;
  }
};

}  // namespace frugal::detail

#ifndef FRUGAL_COMPILED
#include <frugal/base/hash.ipp>
#endif
