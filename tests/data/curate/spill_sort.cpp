// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <frugal/data/curate/spill_sort.hpp>

#include "support/files.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>
#include <span>
#include <string>
#include <thread>
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

namespace frugal_test::data_curate_spill_sort {

using frugal::detail::SpillFolder;
using frugal::detail::SpillSort;

struct Record {
  std::uint64_t key = 0;
  std::uint64_t index = 0;
  friend auto operator<=>(Record const&, Record const&) = default;
};

std::vector<Record> random_records(std::size_t count) {
  std::mt19937_64 random(7);
  std::vector<Record> out(count);
  for (Record& each : out) each = {.key = random() % 1000, .index = random() % 100};
  return out;
}

TEST_CASE("records come out sorted, with any memory and any number of parts") {
  auto const records = random_records(20'000);
  auto sorted = records;
  std::sort(sorted.begin(), sorted.end());
  support::TemporaryFolder folder;
  // 320,000 bytes of records: from all in memory, to hundreds of files that take several passes.
  for (std::uint64_t const memory : {1ULL << 20, 1ULL << 16, 1ULL << 13}) {
    for (unsigned const parts : {1U, 2U, 8U}) {
      SpillFolder files(folder.path());
      SpillSort<Record> sort(files, memory, parts);
      for (std::size_t i = 0; i < records.size(); ++i) {
        sort.add(static_cast<unsigned>(i % parts), records[i]);
      }
      std::vector<Record> out;
      sort.visit([&](Record const& each) { out.push_back(each); });
      CHECK(out == sorted);
      CHECK((files.runs() > 0) == (memory < records.size() * sizeof(Record)));
    }
  }
  CHECK(support::entries(folder.path()) == 0);  // the folder of files goes with its object
}

TEST_CASE("nothing added is nothing visited, and no file is written") {
  support::TemporaryFolder folder;
  SpillFolder files(folder / "made only when needed");
  SpillSort<Record> sort(files, 1024, 3);
  int visits = 0;
  sort.visit([&](Record const&) { ++visits; });
  CHECK(visits == 0);
  CHECK(!std::filesystem::exists(folder / "made only when needed"));
}

TEST_CASE("a limit above all memory is no limit") {
  auto const records = random_records(1000);
  support::TemporaryFolder folder;
  SpillFolder files(folder.path());
  SpillSort<Record> sort(files, ~std::uint64_t{0}, 1);
  for (Record const& each : records) sort.add(0, each);
  std::uint64_t visits = 0;
  sort.visit([&](Record const&) { ++visits; });
  CHECK(visits == records.size());
  CHECK(files.runs() == 0);
}

TEST_CASE("threads add to parts of their own at the same time") {
  auto const records = random_records(8'000);
  support::TemporaryFolder folder;
  SpillFolder files(folder.path());
  SpillSort<Record> sort(files, 1U << 14, 4);
  std::vector<std::thread> threads;
  for (unsigned part = 0; part < 4; ++part) {
    threads.emplace_back([&, part] {
      for (std::size_t i = part; i < records.size(); i += 4) sort.add(part, records[i]);
    });
  }
  for (std::thread& each : threads) each.join();
  auto sorted = records;
  std::sort(sorted.begin(), sorted.end());
  std::vector<Record> out;
  sort.visit([&](Record const& each) { out.push_back(each); });
  CHECK(out == sorted);
}

TEST_CASE("a run that was damaged on disk is an error, and no wrong result") {
  auto const records = random_records(2'000);
  support::TemporaryFolder folder;
  SpillFolder files(folder.path());
  SpillSort<Record> sort(files, 1U << 13, 1);
  for (Record const& each : records) sort.add(0, each);
  for (auto const& entry : std::filesystem::recursive_directory_iterator(folder.path())) {
    if (!entry.is_regular_file()) continue;
    std::fstream file(entry.path(), std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(100);
    file.put('\x55');
    break;
  }
  CHECK_THROWS_AS(sort.visit([](Record const&) {}), frugal::FormatError);
}

TEST_CASE("a folder that cannot be written to is named") {
  support::TemporaryFolder folder;
  std::ofstream(folder / "file") << "x";
  SpillFolder files(folder / "file");
  SpillSort<Record> sort(files, 1024, 1);
  auto const fill = [&] {
    for (Record const& each : random_records(1'000)) sort.add(0, each);
  };
  CHECK_THROWS_AS(fill(), frugal::StoreError);
}

}  // namespace frugal_test::data_curate_spill_sort
