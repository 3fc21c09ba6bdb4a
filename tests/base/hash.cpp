// SPDX-License-Identifier: Apache-2.0
// torch-free

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <frugal/base/hash.hpp>

#include "support/checkpoints.hpp"

namespace frugal_test::store_hash {

using frugal::Hash;
using frugal::hex_of;
using frugal::detail::SipHash;
using support::bytes_of;

// The output of `xxhsum -H3` for no bytes and for "abc".
TEST_CASE("hashes are those of the program xxhsum") {
  CHECK(hex_of(Hash::of({})) == "2d06800538d394c2");
  CHECK(hex_of(Hash::of(bytes_of("abc"))) == "78af5f94892f3950");
}

TEST_CASE("splitting bytes into pieces does not change their hash") {
  std::string text;
  for (int i = 0; i < 5000; ++i) text.push_back(static_cast<char>(i * 7 + i / 256));
  for (std::size_t const piece : {1U, 3U, 64U, 255U, 1024U, 4999U}) {
    Hash hash;
    for (std::size_t at = 0; at < text.size(); at += piece) {
      hash.update(bytes_of(text).subspan(at, std::min(piece, text.size() - at)));
    }
    CHECK(hash.digest() == Hash::of(bytes_of(text)));
  }
}

struct Pieces {
  void write(std::span<std::byte const> bytes) {
    all.insert(all.end(), bytes.begin(), bytes.end());
    ++writes;
  }
  std::vector<std::byte> all;
  int writes = 0;
};

TEST_CASE("a hashed sink forwards everything in order, counted and hashed") {
  std::vector<std::byte> bytes((std::size_t{5} << 20) + 17);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i * 31 >> 5);
  Pieces pieces;
  frugal::Hashed sink(pieces);
  sink.write(bytes);
  sink.write(bytes_of("tail"));
  for (char const c : std::string("tail")) bytes.push_back(static_cast<std::byte>(c));
  CHECK(pieces.all == bytes);
  CHECK(pieces.writes == 7);
  CHECK(sink.size() == bytes.size());
  CHECK(sink.digest() == Hash::of(bytes));
}

// Of OpenSSL 3: openssl mac -macopt hexkey:000102030405060708090a0b0c0d0e0f -macopt size:16 -in FILE SipHash
TEST_CASE("the tags of OpenSSL, of texts of 0 to 64 bytes") {
  SipHash::Key const key{0x0706050403020100, 0x0f0e0d0c0b0a0908};
  std::string text;
  for (int i = 0; i < 64; ++i) text += static_cast<char>(i);
  for (auto const& [size, tag] :
       {std::pair<int, char const*>{0, "a3817f04ba25a8e66df67214c7550293"},
        std::pair<int, char const*>{1, "da87c1d86b99af44347659119b22fc45"},
        std::pair<int, char const*>{7, "a1f1ebbed8dbc153c0b84aa61ff08239"},
        std::pair<int, char const*>{8, "3b62a9ba6258f5610f83e264f31497b4"},
        std::pair<int, char const*>{15, "5493e99933b0a8117e08ec0f97cfc3d9"},
        std::pair<int, char const*>{16, "6ee2a4ca67b054bbfd3315bf85230577"},
        std::pair<int, char const*>{63, "5150d1772f50834a503e069a973fbd7c"},
        std::pair<int, char const*>{64, "1eaf077dc0d4cd3f8cad4d383658a74b"}}) {
    CAPTURE(size);
    CHECK(SipHash::hex(SipHash::of(key, text.substr(0, static_cast<std::size_t>(size)))) == tag);
  }
}

}  // namespace frugal_test::store_hash
