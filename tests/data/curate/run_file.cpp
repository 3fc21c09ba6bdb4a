// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <doctest/doctest.h>

#include <frugal/data/curate/run_file.hpp>

#include "support/files.hpp"

#include <compare>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <vector>

namespace frugal_test::data_curate_run_file {

struct Record {
  std::uint64_t key = 0;
  std::uint64_t index = 0;
  friend auto operator<=>(Record const&, Record const&) = default;
};

/// Bytes in memory that are read as a file.
struct Bytes {
  std::size_t read(std::span<std::byte> to) {
    std::size_t const count = std::min(to.size(), text.size() - at);
    std::memcpy(to.data(), text.data() + at, count);
    at += count;
    return count;
  }
  std::string text;
  std::size_t at = 0;
};

std::vector<Record> some(std::size_t count) {
  std::vector<Record> records;
  for (std::size_t i = 0; i < count; ++i) records.push_back({.key = i / 3, .index = i});
  return records;
}

std::string written(std::vector<Record> const& records) {
  support::TemporaryFolder folder;
  frugal::detail::RunWriter<Record> writer(folder / "run");
  // In two pieces, as a merge writes them.
  writer.write(std::span(records).first(records.size() / 2));
  writer.write(std::span(records).subspan(records.size() / 2));
  writer.close();
  return support::text_of(folder / "run");
}

std::vector<Record> read(std::string const& bytes, std::size_t block) {
  std::vector<Record> out;
  frugal::detail::RunReader<Record, Bytes> reader({bytes}, bytes.size(), "run", block);
  for (; reader.front() != nullptr; reader.pop()) out.push_back(*reader.front());
  return out;
}

TEST_CASE("a run reads as it was written, with blocks of any size") {
  for (std::size_t const count : {0U, 1U, 2U, 100U}) {
    std::string const bytes = written(some(count));
    CHECK(bytes.size() == frugal::detail::run_overhead + 16 * count);
    for (std::size_t const block : {0U, 1U, 3U, 100U, 1000U})
      CHECK(read(bytes, block) == some(count));
  }
}

TEST_CASE("every truncation of a run is refused") {
  std::string const bytes = written(some(5));
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    CHECK_THROWS_AS(read(bytes.substr(0, size), 2), frugal::FormatError);
  }
  CHECK_THROWS_AS(read(bytes + std::string(16, '\0'), 2), frugal::FormatError);
}

TEST_CASE("every flipped bit of a run is refused") {
  std::string const bytes = written(some(5));
  for (std::size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    std::string damaged = bytes;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << (bit % 8)));
    CHECK_THROWS_AS(read(damaged, 2), frugal::FormatError);
  }
}

TEST_CASE("records that are not in order are refused within a block and across two") {
  std::vector<Record> records = some(4);
  std::swap(records[1], records[2]);
  std::string const bytes = written(records);
  for (std::size_t const block : {1U, 2U, 4U}) {
    try {
      read(bytes, block);
      FAIL("nothing was thrown");
    } catch (frugal::FormatError const& error) {
      CHECK(error.fault().why == "its records are not in ascending order");
    }
  }
}

TEST_CASE("a file that becomes shorter while it is read is refused") {
  std::string const bytes = written(some(50));
  frugal::detail::RunReader<Record, Bytes> reader({bytes.substr(0, 400)}, bytes.size(), "run", 10);
  auto const all = [&] {
    while (reader.front() != nullptr) reader.pop();
  };
  CHECK_THROWS_AS(all(), frugal::FormatError);
}

}  // namespace frugal_test::data_curate_run_file
