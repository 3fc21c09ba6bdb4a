// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace frugal::detail {

/// SipHash-2-4 with 128 bits of output (Aumasson and Bernstein, 2012): a keyed hash that nobody computes
/// without the key. Other hashes here find damage, and stop nobody who means it.
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
