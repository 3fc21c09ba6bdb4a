// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <doctest/doctest.h>

#include <frugal/base/hash.hpp>

#include "support/checkpoints.hpp"

#include <algorithm>
#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace frugal_test::store_hash {

using frugal::Hash;
using frugal::hex_of;
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

}  // namespace frugal_test::store_hash
