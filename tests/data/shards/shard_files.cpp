// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <frugal/data/shards/record_folder.hpp>
#include <frugal/data/shards/shard_files.hpp>

#include "data/shards/records.hpp"
#include "support/files.hpp"

#include <doctest/doctest.h>

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <string>

namespace frugal_test::data_shards_shard_files {

using namespace frugal_test::records;
using frugal::OnDamage;
using frugal::RecordFolder;
using frugal::ShardFiles;
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

TEST_CASE("without a record there are no shards") {
  TemporaryFolder const folder;
  ShardFiles files(folder.path());
  CHECK_THROWS_AS(files.close(), frugal::EmptySourceError);
  CHECK(frugal::entries_of(folder.path()).empty());
}

}  // namespace frugal_test::data_shards_shard_files
