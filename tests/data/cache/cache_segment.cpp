// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <frugal/data/cache/cache_segment.hpp>

#include "support/files.hpp"

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace frugal_test::data_cache_cache_segment {

using frugal::detail::CacheEntry;
using frugal::detail::CacheSegment;
using frugal::detail::CacheSegmentWriter;
using frugal_test::support::TemporaryFolder;

CacheEntry add(CacheSegmentWriter& writer, std::uint64_t sample, std::string const& text) {
  CacheEntry entry{.sample = sample, .source_bytes = 7};
  writer.add(entry, std::as_bytes(std::span(text)));
  return entry;
}
std::string text_of(CacheSegment const& segment, CacheEntry const& entry) {
  auto const bytes = segment.bytes(entry);
  return {reinterpret_cast<char const*>(bytes.data()), bytes.size()};
}

TEST_CASE("a reader sees what is written meanwhile, each entry once") {
  TemporaryFolder const folder;
  CacheSegmentWriter writer(folder.path(), {.key = 5, .capacity = 4096});
  auto const reader = CacheSegment::open(writer.index_path(), 5);
  REQUIRE(reader);
  CHECK(reader->news(10).empty());
  auto const first = add(writer, 3, "three");
  CHECK(first.offset == 0);
  auto news = reader->news(10);
  REQUIRE(news.size() == 1);
  CHECK(news[0] == first);
  CHECK(text_of(*reader, news[0]) == "three");
  add(writer, 4, "four");
  add(writer, 99, "of another set");
  news = reader->news(10);
  REQUIRE(news.size() == 1);
  CHECK(text_of(*reader, news[0]) == "four");
  CHECK(reader->disk_bytes() == 64 + 3 * (48 + 64));
}

TEST_CASE("when its writer has ended a segment is read once more, and stays readable") {
  TemporaryFolder const folder;
  std::optional<CacheSegmentWriter> writer;
  writer.emplace(folder.path(), frugal::detail::CacheSegmentHeader{.key = 5, .capacity = 100});
  auto const path = writer->index_path();
  auto const reader = CacheSegment::open(path, 5);
  auto const entry = add(*writer, 1, "one");
  writer.reset();
  CHECK(reader->news(10).size() == 1);
  CHECK(reader->news(10).empty());
  CHECK(text_of(*reader, entry) == "one");
  CHECK(CacheSegment::open(path, 6) == nullptr);  // of another key
}

TEST_CASE("a segment has room for its capacity, the last sample without padding") {
  TemporaryFolder const folder;
  CacheSegmentWriter writer(folder.path(), {.key = 5, .capacity = 100});
  CHECK(writer.has_room(100));
  CHECK_FALSE(writer.has_room(101));
  add(writer, 0, "x");
  CHECK(writer.has_room(36));
  CHECK_FALSE(writer.has_room(37));
  auto const last = add(writer, 1, std::string(36, 'y'));
  auto const reader = CacheSegment::open(writer.index_path(), 5);
  CHECK(reader->news(2).size() == 2);
  CHECK(text_of(*reader, last) == std::string(36, 'y'));
}

using frugal::detail::cache_entries;
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

}  // namespace frugal_test::data_cache_cache_segment
