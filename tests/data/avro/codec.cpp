// SPDX-License-Identifier: Apache-2.0
// torch-free
// needs: avro
#include <frugal/data/avro/codec.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <string>

using frugal::AvroCodec;
using frugal::detail::compressed;
using frugal::detail::decompressed;

namespace {

std::string content(std::size_t size) {
  std::string bytes(size, '\0');
  std::uint32_t x = 1;
  for (char& c : bytes) c = static_cast<char>((x = x * 1664525U + 1013904223U) >> 29);
  return bytes;
}

}  // namespace

TEST_CASE("what is compressed comes back, of every size") {
  for (AvroCodec const codec : {AvroCodec::null, AvroCodec::deflate, AvroCodec::zstandard}) {
    for (std::size_t const size : {0U, 1U, 1000U, 131072U, 1000000U}) {
      std::string const plain = content(size);
      std::string const packed = compressed(codec, plain, "block");
      CHECK((decompressed(codec, packed, size, "block") == plain));
      if (codec != AvroCodec::null && size > 1000) CHECK(packed.size() < size / 2);
      if (size > 0) {
        CHECK_THROWS_WITH_AS(static_cast<void>(decompressed(codec, packed, size - 1, "block")),
                             doctest::Contains("a block is too large"), frugal::DataError);
      }
    }
  }
}

TEST_CASE("a stream that is cut off anywhere is damaged") {
  for (AvroCodec const codec : {AvroCodec::deflate, AvroCodec::zstandard}) {
    std::string const packed = compressed(codec, content(2000), "block 7");
    for (std::size_t size = 0; size < packed.size(); size += 13) {
      if (codec == AvroCodec::zstandard && size == 0) continue;
      CHECK_THROWS_WITH_AS(
          static_cast<void>(decompressed(codec, packed.substr(0, size), 1 << 20, "block 7")),
          doctest::Contains("(block 7)"), frugal::DataError);
    }
  }
}

TEST_CASE("bytes after a deflate stream are passed over, as fastavro leaves some") {
  std::string const packed = compressed(AvroCodec::deflate, "rows", "block") + "\1\2\3";
  CHECK(decompressed(AvroCodec::deflate, packed, 100, "block") == "rows");
}

TEST_CASE("two frames of zstandard are one content") {
  std::string const packed = compressed(AvroCodec::zstandard, "one ", "block") +
                             compressed(AvroCodec::zstandard, "two", "block");
  CHECK(decompressed(AvroCodec::zstandard, packed, 100, "block") == "one two");
}

TEST_CASE("codecs have the names of the specification") {
  CHECK(*frugal::detail::codec_of("zstandard") == AvroCodec::zstandard);
  CHECK(*frugal::detail::codec_of("null") == AvroCodec::null);
  CHECK(*frugal::detail::codec_of("deflate") == AvroCodec::deflate);
  CHECK_FALSE(frugal::detail::codec_of("snappy"));
}
