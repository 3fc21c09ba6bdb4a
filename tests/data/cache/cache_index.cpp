// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <frugal/data/cache/cache_index.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace frugal_test::data_cache_cache_index {

using frugal::detail::cache_entries;
using frugal::detail::CacheEntry;
using frugal::detail::CacheSegmentHeader;

std::vector<std::byte> index_of(std::vector<CacheEntry> const& entries) {
  std::vector<std::byte> bytes;
  for (CacheEntry const& entry : entries) {
    frugal::detail::append_bytes(bytes, entry.file_bytes());
  }
  return bytes;
}

std::vector<CacheEntry> three() {
  return {{.sample = 4, .offset = 0, .bytes = 100, .source_bytes = 7, .hash = 11},
          {.sample = 0, .offset = 128, .bytes = 0, .hash = 12},
          {.sample = 9, .offset = 128, .bytes = 72, .source_bytes = 9, .hash = 13}};
}

TEST_CASE("entries come back as they were written") {
  CHECK(cache_entries(index_of(three()), 10, 200) == three());
  CHECK(cache_entries({}, 10, 200).empty());
}

TEST_CASE("part of an entry at the end is left alone") {
  auto const bytes = index_of(three());
  for (std::size_t size = 0; size <= bytes.size(); ++size) {
    CHECK(cache_entries(std::span(bytes).first(size), 10, 200).size() == size / 48);
  }
}

TEST_CASE("an entry with any byte changed is passed over, and those behind it are not") {
  auto const whole = index_of(three());
  for (std::size_t at = 48; at < 96; ++at) {
    auto bytes = whole;
    bytes[at] ^= std::byte{0x40};
    auto const entries = cache_entries(bytes, 10, 200);
    REQUIRE(entries.size() == 2);
    CHECK(entries[0] == three()[0]);
    CHECK(entries[1] == three()[2]);
  }
}

TEST_CASE("an entry outside of the data or of the set is passed over, although its hash is right") {
  std::uint64_t const most = ~std::uint64_t{0};
  for (CacheEntry const& entry :
       {CacheEntry{.sample = 10, .bytes = 1}, CacheEntry{.sample = most, .bytes = 1},
        CacheEntry{.offset = 200, .bytes = 1}, CacheEntry{.offset = most, .bytes = 1},
        CacheEntry{.offset = most, .bytes = most}, CacheEntry{.offset = 1, .bytes = 200},
        CacheEntry{.bytes = most}}) {
    CHECK(cache_entries(entry.file_bytes(), 10, 200).empty());
  }
  CHECK(cache_entries(CacheEntry{.sample = 9, .offset = 200}.file_bytes(), 10, 200).size() == 1);
}

TEST_CASE("a header is read back, and refused if a byte differs") {
  CacheSegmentHeader const header{.key = 77, .capacity = 1 << 20};
  auto const bytes = header.file_bytes();
  REQUIRE(bytes.size() == 64);
  auto const found = CacheSegmentHeader::parse(bytes);
  REQUIRE(found);
  CHECK(found->key == 77);
  CHECK(found->capacity == 1 << 20);
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    auto changed = bytes;
    changed[at] ^= std::byte{1};
    CHECK_FALSE(CacheSegmentHeader::parse(changed));
    CHECK_FALSE(CacheSegmentHeader::parse(std::span(bytes).first(at)));
  }
}

}  // namespace frugal_test::data_cache_cache_index
