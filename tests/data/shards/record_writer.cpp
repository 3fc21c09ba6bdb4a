// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <frugal/data/shards/record_file.hpp>
#include <frugal/data/shards/record_writer.hpp>

#include "data/shards/records.hpp"
#include "support/files.hpp"

#include <doctest/doctest.h>

#include <sys/wait.h>
#include <unistd.h>

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
  RecordWriter writer(folder / "a.safetensors", small_layout());
  add_small(writer, 1);
  CHECK_FALSE(std::filesystem::exists(folder / "a.safetensors"));
  auto const written = writer.close();
  CHECK(written.records == 1);
  CHECK(written.bytes == std::filesystem::file_size(folder / "a.safetensors"));
  CHECK(entries(folder.path()) == 1);
}

TEST_CASE("an abandoned file is removed") {
  TemporaryFolder const folder;
  {
    RecordWriter writer(folder / "a.safetensors", small_layout());
    add_small(writer, 1);
    CHECK(entries(folder.path()) == 2);  // a file for each tensor
  }
  CHECK(entries(folder.path()) == 0);
}

TEST_CASE("a writer that is killed leaves no file of that name") {
  TemporaryFolder const folder;
  pid_t const child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    RecordWriter writer(folder / "a.safetensors", small_layout(), 16);
    for (int i = 0; i < 100; ++i) add_small(writer, i);
    ::kill(::getpid(), SIGKILL);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  REQUIRE(WIFSIGNALED(status));
  CHECK_FALSE(std::filesystem::exists(folder / "a.safetensors"));
  write_small(folder / "a.safetensors", 3);  // the rest of the first one is in nobody's way
  CHECK(RecordFile(folder / "a.safetensors").size() == 3);
}

TEST_CASE("a file that exists is not replaced") {
  TemporaryFolder const folder;
  write_small(folder / "a.safetensors", 3);
  auto const before = file_bytes(folder / "a.safetensors");
  CHECK_THROWS_AS(write_small(folder / "a.safetensors", 4), frugal::StoreError);
  CHECK(file_bytes(folder / "a.safetensors") == before);
  CHECK(entries(folder.path()) == 1);
}

TEST_CASE("a record of other fields names both, and the writer goes on") {
  TemporaryFolder const folder;
  RecordWriter writer(folder / "a.safetensors", small_layout());
  add_small(writer, 0);
  try {
    add_bytes(writer, "short");
    FAIL("not refused");
  } catch (frugal::DataError const& error) {
    CHECK(error.fault().where.ends_with("a.safetensors, record 1"));
    CHECK(error.fault().why ==
          "it has fields of 5 bytes, and a record is data U8 [3], target I64 []");
  }
  add_small(writer, 1);
  CHECK(writer.close().records == 2);
}

TEST_CASE("the size of a block does not change what is read") {
  TemporaryFolder const folder;
  for (std::uint64_t const block : {1ULL, 7ULL, 16ULL, 1ULL << 16}) {
    auto const path = folder / std::to_string(block);
    RecordWriter writer(path, small_layout(), block);
    for (int i = 0; i < 20; ++i) add_small(writer, i);
    writer.close();
    RecordFile const file(path);
    for (int i = 0; i < 20; ++i) {
      CHECK(is_small(file, static_cast<std::uint64_t>(i), i));
    }
  }
}

TEST_CASE("tensors larger than the writer's memory come back") {
  TemporaryFolder const folder;
  std::string const large(100'000, 'x');
  RecordWriter writer(folder / "a.safetensors");
  for (std::string const& text : {large, std::string("small"), large}) add_bytes(writer, text);
  for (int i = 0; i < 20'000; ++i) add_bytes(writer, std::to_string(i));
  writer.close();
  RecordFile const file(folder / "a.safetensors", frugal::Verify::AtOpen);
  REQUIRE(file.size() == 20'003);
  CHECK(text_of(file.get(0)) == large);
  CHECK(text_of(file.get(1)) == "small");
  CHECK(text_of(file.get(2)) == large);
  for (int i = 0; i < 20'000; ++i) {
    REQUIRE(text_of(file.get(static_cast<std::uint64_t>(i) + 3)) == std::to_string(i));
  }
}

TEST_CASE("blocks of no bytes, and enormous ones, are refused") {
  TemporaryFolder const folder;
  CHECK_THROWS_AS(RecordWriter(folder / "a", {}, 0), frugal::SettingsError);
  CHECK_THROWS_AS(RecordWriter(folder / "a", {}, (1ULL << 30) + 1), frugal::SettingsError);
  CHECK(entries(folder.path()) == 0);
}

TEST_CASE("a folder that is not there is named") {
  TemporaryFolder const folder;
  CHECK_THROWS_AS(RecordWriter(folder / "none/a.safetensors"), frugal::StoreError);
}

}  // namespace frugal_test::data_shards_record_writer
