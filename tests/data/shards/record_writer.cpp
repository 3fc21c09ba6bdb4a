// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <frugal/data/shards/record_file.hpp>
#include <frugal/data/shards/record_writer.hpp>

#include "data/shards/records.hpp"
#include "support/files.hpp"

#include <doctest/doctest.h>

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <string>
#include <vector>

namespace frugal_test::data_shards_record_writer {

using namespace frugal_test::records;
using frugal::RecordFile;
using frugal::RecordWriter;
using frugal_test::support::entries;
using frugal_test::support::TemporaryFolder;

TEST_CASE("a file has its name only when it is complete") {
  TemporaryFolder const folder;
  RecordWriter writer(folder / "a.records", small_layout());
  writer.add(small_record(1));
  CHECK_FALSE(std::filesystem::exists(folder / "a.records"));
  auto const written = writer.close();
  CHECK(written.records == 1);
  CHECK(written.bytes == std::filesystem::file_size(folder / "a.records"));
  CHECK(entries(folder.path()) == 1);
}

TEST_CASE("an abandoned file is removed") {
  TemporaryFolder const folder;
  {
    RecordWriter writer(folder / "a.records", small_layout());
    writer.add(small_record(1));
    CHECK(entries(folder.path()) == 1);
  }
  CHECK(entries(folder.path()) == 0);
}

TEST_CASE("a writer that is killed leaves no file of that name") {
  TemporaryFolder const folder;
  pid_t const child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    RecordWriter writer(folder / "a.records", small_layout(), 16);
    for (int i = 0; i < 100; ++i) writer.add(small_record(i));
    ::kill(::getpid(), SIGKILL);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  REQUIRE(WIFSIGNALED(status));
  CHECK_FALSE(std::filesystem::exists(folder / "a.records"));
  write_small(folder / "a.records", 3);  // the rest of the first one is in nobody's way
  CHECK(RecordFile(folder / "a.records").size() == 3);
}

TEST_CASE("a file that exists is not replaced") {
  TemporaryFolder const folder;
  write_small(folder / "a.records", 3);
  auto const before = file_bytes(folder / "a.records");
  CHECK_THROWS_AS(write_small(folder / "a.records", 4), frugal::StoreError);
  CHECK(file_bytes(folder / "a.records") == before);
  CHECK(entries(folder.path()) == 1);
}

TEST_CASE("a record of another size names both, and the writer goes on") {
  TemporaryFolder const folder;
  RecordWriter writer(folder / "a.records", small_layout());
  writer.add(small_record(0));
  try {
    writer.add(bytes_of("short"));
    FAIL("not refused");
  } catch (frugal::DataError const& error) {
    CHECK(error.fault().where.ends_with("a.records, record 1"));
    CHECK(error.fault().why == "it has 5 bytes, and a record of data U8 [3], target I64 [] has 16");
  }
  writer.add(small_record(1));
  CHECK(writer.close().records == 2);
}

TEST_CASE("the size of a block does not change what is read") {
  TemporaryFolder const folder;
  for (std::uint64_t const block : {1ULL, 7ULL, 16ULL, 1ULL << 16}) {
    auto const path = folder / std::to_string(block);
    RecordWriter writer(path, small_layout(), block);
    for (int i = 0; i < 20; ++i) writer.add(small_record(i));
    writer.close();
    RecordFile const file(path);
    for (int i = 0; i < 20; ++i) {
      CHECK(std::ranges::equal(file.record(static_cast<std::uint64_t>(i)), small_record(i)));
    }
  }
}

TEST_CASE("blocks of no bytes, and enormous ones, are refused") {
  TemporaryFolder const folder;
  CHECK_THROWS_AS(RecordWriter(folder / "a", {}, 0), frugal::SettingsError);
  CHECK_THROWS_AS(RecordWriter(folder / "a", {}, (1ULL << 30) + 1), frugal::SettingsError);
  CHECK(entries(folder.path()) == 0);
}

TEST_CASE("names that no reader would take are refused, and the longest that it takes are read") {
  TemporaryFolder const folder;
  std::string why;
  auto const layout = [&](std::size_t size) {
    return *frugal::RecordLayout::of({{.name = std::string(size, 'n')}}, why);
  };
  CHECK_THROWS_AS(RecordWriter(folder / "a", layout(1 << 20)), frugal::SettingsError);
  CHECK(entries(folder.path()) == 0);
  std::size_t const around = frugal::detail::RecordHeader{.layout = layout(0)}.json().size();
  for (std::size_t const more : {0U, 1U}) {
    std::size_t const size = (1U << 20) - around + more;
    if (more == 1) {
      CHECK_THROWS_AS(RecordWriter(folder / "a", layout(size)), frugal::SettingsError);
      continue;
    }
    RecordWriter writer(folder / "a", layout(size));
    writer.add(std::vector<std::byte>(1));
    writer.close();
    CHECK(RecordFile(folder / "a").layout() == layout(size));
  }
}

TEST_CASE("a folder that is not there is named") {
  TemporaryFolder const folder;
  CHECK_THROWS_AS(RecordWriter(folder / "none/a.records"), frugal::StoreError);
}

}  // namespace frugal_test::data_shards_record_writer
