// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <frugal/data/shards/record_file.hpp>
#include <frugal/data/shards/shard_files.hpp>

#include "data/shards/records.hpp"
#include "support/files.hpp"

#include <doctest/doctest.h>

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <filesystem>
#include <string>

namespace frugal_test::data_shards_shard_files {

using namespace frugal_test::records;
using frugal::OnDamage;
using frugal::RecordFolder;
using frugal::ShardFiles;
using frugal::ShardList;
using frugal_test::support::entries;
using frugal_test::support::TemporaryFolder;

TEST_CASE("records of any bytes go into shards, a large one into a shard of its own") {
  TemporaryFolder const folder;
  ShardFiles files(folder / "new", {.bytes_per_shard = 8});
  for (std::string const text : {"one", "two", "a long one", "", "x"}) add_bytes(files, text);
  CHECK(files.records() == 5);
  auto const list = files.close();
  REQUIRE(list.shards.size() == 3);
  CHECK(list.shards[0].records == 2);
  CHECK(list.shards[1].records == 1);
  CHECK(list.shards[2].records == 2);
  RecordFolder const set(folder / "new");
  CHECK(text_of(set.get(2)) == "a long one");
  CHECK(text_of(set.get(4)) == "x");
}

TEST_CASE("a writer that is killed leaves complete shards, which only Skip takes") {
  TemporaryFolder const folder;
  pid_t const child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    ShardFiles files(folder.path(), {.records_per_shard = 3}, small_layout());
    for (std::int64_t i = 0; i < 8; ++i) add_small(files, i);
    ::kill(::getpid(), SIGKILL);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  REQUIRE(WIFSIGNALED(status));
  CHECK_THROWS_AS(RecordFolder(folder.path()), frugal::DataError);
  RecordFolder const set(folder.path(), {.on_damage = OnDamage::Skip});
  REQUIRE(set.size() == 6);
  for (std::int64_t i = 0; i < 6; ++i) {
    CHECK(is_small(set, static_cast<std::uint64_t>(i), i));
  }
  CHECK_THROWS_AS(ShardFiles(folder.path()), frugal::StoreError);
}

TEST_CASE("a shard has its name only when it is complete") {
  TemporaryFolder const folder;
  ShardFiles files(folder.path(), {}, small_layout());
  add_small(files, 1);
  auto const shard = folder / ShardList::shard_name(0);
  CHECK_FALSE(std::filesystem::exists(shard));
  auto const list = files.close();
  CHECK(list.shards.front().records == 1);
  CHECK(list.shards.front().bytes == std::filesystem::file_size(shard));
  CHECK(list.shards.front().hash == frugal::RecordFile(shard).hash());
  CHECK(entries(folder.path()) == 2);  // with the list
}

TEST_CASE("an abandoned shard is removed") {
  TemporaryFolder const folder;
  {
    ShardFiles files(folder.path(), {}, small_layout());
    add_small(files, 1);
    CHECK(entries(folder.path()) == 2);  // a file for each tensor
  }
  CHECK(entries(folder.path()) == 0);
}

TEST_CASE("a shard that another process wrote meanwhile is not replaced") {
  TemporaryFolder const folder;
  ShardFiles files(folder.path(), {}, small_layout());
  add_small(files, 1);
  auto const shard = folder / ShardList::shard_name(0);
  put_bytes(shard, bytes_of("theirs"));
  CHECK_THROWS_AS(files.close(), frugal::StoreError);
  CHECK(text_of(file_bytes(shard)) == "theirs");
}

TEST_CASE("a record of other fields names both, and the writer goes on") {
  TemporaryFolder const folder;
  ShardFiles files(folder.path(), {}, small_layout());
  add_small(files, 0);
  try {
    add_bytes(files, "short");
    FAIL("not refused");
  } catch (frugal::DataError const& error) {
    CHECK(error.fault().where == folder.path().string() + ", record 1");
    CHECK(error.fault().why ==
          "it has fields of 5 bytes, and a record is data U8 [3], target I64 []");
  }
  add_small(files, 1);
  CHECK(files.close().shards.front().records == 2);
  CHECK(is_small(RecordFolder(folder.path()), 1, 1));
}

TEST_CASE("the size of a block does not change what is read") {
  for (std::uint64_t const block : {1ULL, 7ULL, 16ULL, 1ULL << 16}) {
    TemporaryFolder const folder;
    ShardFiles files(folder.path(), {.block_bytes = block}, small_layout());
    for (int i = 0; i < 20; ++i) add_small(files, i);
    files.close();
    RecordFolder const set(folder.path());
    for (int i = 0; i < 20; ++i) CHECK(is_small(set, static_cast<std::uint64_t>(i), i));
  }
}

TEST_CASE("blocks of no bytes, and enormous ones, are refused") {
  TemporaryFolder const folder;
  CHECK_THROWS_AS(ShardFiles(folder / "a", {.block_bytes = 0}), frugal::SettingsError);
  CHECK_THROWS_AS(ShardFiles(folder / "a", {.block_bytes = (1ULL << 30) + 1}),
                  frugal::SettingsError);
  CHECK(entries(folder.path()) == 0);
}

TEST_CASE("tensors larger than the writer's memory come back") {
  TemporaryFolder const folder;
  std::string const large(100'000, 'x');
  ShardFiles files(folder.path());
  for (std::string const& text : {large, std::string("small"), large}) add_bytes(files, text);
  for (int i = 0; i < 20'000; ++i) add_bytes(files, std::to_string(i));
  files.close();
  RecordFolder const set(folder.path(), {.verify = frugal::Verify::AtOpen});
  REQUIRE(set.size() == 20'003);
  CHECK(text_of(set.get(0)) == large);
  CHECK(text_of(set.get(1)) == "small");
  CHECK(text_of(set.get(2)) == large);
  for (int i = 0; i < 20'000; ++i) {
    REQUIRE(text_of(set.get(static_cast<std::uint64_t>(i) + 3)) == std::to_string(i));
  }
}

TEST_CASE("without a record there are no shards") {
  TemporaryFolder const folder;
  ShardFiles files(folder.path());
  CHECK_THROWS_AS(files.close(), frugal::EmptySourceError);
  CHECK(frugal::entries_of(folder.path()).empty());
}

}  // namespace frugal_test::data_shards_shard_files
