// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <frugal/data/cache/cache_segment.hpp>

#include "support/files.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>

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

}  // namespace frugal_test::data_cache_cache_segment
